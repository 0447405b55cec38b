import { Languages, Moon, Sun, SunMoon } from 'lucide-react';
import { useLive, useStatus } from '../api/data';
import { useLanguage } from '../i18n';
import { useTheme, type Theme } from '../lib/theme';
import { IconButton } from '../ui/basic';

const NEXT: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };
const ICONS = { system: SunMoon, light: Sun, dark: Moon };

export function Preferences() {
  const { t, language, setLanguage } = useLanguage();
  const [theme, setTheme] = useTheme();
  return (
    <div className="row tight">
      <IconButton
        icon={ICONS[theme]}
        label={t('theme.switch', { theme: t(`theme.${theme}`) })}
        onClick={() => setTheme(NEXT[theme])}
      />
      <IconButton
        icon={Languages}
        label={language === 'en' ? '切换到中文' : 'Switch to English'}
        lang={language === 'en' ? 'zh-CN' : 'en'}
        onClick={() => setLanguage(language === 'en' ? 'zh' : 'en')}
      />
    </div>
  );
}

/** Where one is connected to, and whether what is shown is of now. */
export function Connection() {
  const { t } = useLanguage();
  const { link } = useLive();
  const { data: status } = useStatus();
  return (
    <div className="connection">
      <div className="connection-text">
        <span className={`pulse ${link}`} aria-hidden />
        <span className="truncate">{status?.node ?? '…'}</span>
        <span className="muted nowrap">{t(`link.${link}`)}</span>
      </div>
      <Preferences />
    </div>
  );
}
