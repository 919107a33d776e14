/** Every sentence of the pages, in English and Chinese. Names of operators and tables are never translated. */

import { effect, signal } from '@preact/signals';
import { en } from './en';
import { zh } from './zh';

export type Key = keyof typeof en;
export type Language = 'en' | 'zh';
export const LANGUAGES: readonly Language[] = ['en', 'zh'];

const DICTIONARIES: Record<Language, Record<Key, string>> = { en, zh };
const KEPT_AS = 'strobe.language';

export const language = signal<Language>(chosen());

effect(() => {
  document.documentElement.lang = language.value === 'zh' ? 'zh-CN' : 'en';
});

export function setLanguage(next: Language): void {
  language.value = next;
  localStorage.setItem(KEPT_AS, next);
}

/** The sentence for a key, with `{name}` replaced. */
export function t(key: Key, values: Readonly<Record<string, string | number>> = {}): string {
  const text = DICTIONARIES[language.value][key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** As `t`, for keys that are put together; null where there is no such sentence. */
export function maybe(key: string): string | null {
  return key in en ? t(key as Key) : null;
}

function chosen(): Language {
  const asked = new URLSearchParams(location.search).get('lang') ?? localStorage.getItem(KEPT_AS);
  if (asked === 'en' || asked === 'zh') return asked;
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en';
}
