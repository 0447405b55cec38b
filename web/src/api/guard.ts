import { useLanguage } from '../i18n';
import { useScope } from './data';

/**
 * For whatever changes something: a reader sees it, cannot use it, and is told why. Of whom it is not known yet
 * whether they may there is nothing to tell.
 */
export function useGuard(): { disabled?: true; title?: string } {
  const { t } = useLanguage();
  const scope = useScope();
  if (scope === 'full') return {};
  return scope === 'read' ? { disabled: true, title: t('banner.readonlyWhy') } : { disabled: true };
}
