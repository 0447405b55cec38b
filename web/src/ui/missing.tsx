import { useLive } from '../api/data';
import { useLanguage } from '../i18n';

/** In place of what could not be had. That the daemon does not answer stands above every page. */
export function Missing({ error }: { error: Error | null }) {
  const { t } = useLanguage();
  if (useLive().link === 'gone') return <p className="muted">{t('gone.later')}</p>;
  return error && <p className="error-text">{error.message}</p>;
}
