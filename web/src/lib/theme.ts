import { useEffect } from 'react';
import { useRemembered } from './store';

export type Theme = 'system' | 'light' | 'dark';

const query = '(prefers-color-scheme: dark)';

function shown(theme: Theme): 'light' | 'dark' {
  if (theme !== 'system') return theme;
  return globalThis.matchMedia?.(query).matches ? 'dark' : 'light';
}

/** The choice, and what it means here and now on the page's root element. */
export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, choose] = useRemembered<Theme>('berth.theme', 'system');
  useEffect(() => {
    const apply = () => {
      document.documentElement.dataset['theme'] = shown(theme);
    };
    apply();
    const media = globalThis.matchMedia?.(query);
    media?.addEventListener('change', apply);
    return () => media?.removeEventListener('change', apply);
  }, [theme]);
  return [theme, choose];
}
