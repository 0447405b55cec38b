import { createContext, useCallback, useContext, useEffect, useMemo, type ReactNode } from 'react';
import { recall, useRemembered } from '../lib/store';
import { en } from './en';
import { zh } from './zh';

export type Language = 'en' | 'zh';
export type Key = keyof typeof en;
export type Translate = (key: Key, values?: Record<string, string | number>) => string;

const texts: Record<Language, Record<Key, string>> = { en, zh };

/** What the browser asks for, until somebody has chosen. */
export function preferred(languages: readonly string[]): Language {
  const first = languages.find((tag) => /^(en|zh)\b/i.test(tag));
  return first?.toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

/** {name} stands for a value; {name|job|jobs} for the first word where it is one, else for the second. */
export function translate(
  language: Language,
  key: Key,
  values: Record<string, string | number> = {},
): string {
  return texts[language][key].replace(
    /\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g,
    (whole, name: string, one?: string, many?: string) => {
      if (!(name in values)) return whole;
      const value = String(values[name]);
      if (one === undefined || many === undefined) return value;
      return value === '1' ? one : many;
    },
  );
}

/** In every language, for what somebody may have said in another one. */
export const spokenAnywhere = (key: Key): string[] =>
  Object.values(texts).map((known) => known[key]);

const REMEMBERED = 'berth.language';
const fallback = () => preferred(navigator.languages);

/** In the language of the page, for what is said outside of it. */
export const spoken = (key: Key): string =>
  translate(recall(REMEMBERED, fallback()) as Language, key);

interface Speech {
  language: Language;
  setLanguage: (language: Language) => void;
  t: Translate;
}

const Context = createContext<Speech | null>(null);

export function LanguageProvider({ children }: { children: ReactNode }) {
  const [language, setLanguage] = useRemembered<Language>(REMEMBERED, fallback());
  useEffect(() => {
    document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en';
  }, [language]);
  const t = useCallback<Translate>((key, values) => translate(language, key, values), [language]);
  const speech = useMemo(() => ({ language, setLanguage, t }), [language, setLanguage, t]);
  return <Context value={speech}>{children}</Context>;
}

export function useLanguage(): Speech {
  const speech = useContext(Context);
  if (!speech) throw new Error('useLanguage is used outside of LanguageProvider');
  return speech;
}
