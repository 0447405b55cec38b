import { useLanguage } from '../i18n';
import { useMayChange } from './data';

/** For whatever changes something: a reader sees it, cannot use it, and is told why. */
export function useGuard(): { disabled?: true; title?: string } {
  const { t } = useLanguage();
  return useMayChange() ? {} : { disabled: true, title: t('banner.readonlyWhy') };
}
