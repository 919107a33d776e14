/**
 * Every sentence of the pages, in English and Chinese. They are in the message catalogue (src/strobe/messages/catalogue/pages);
 * `make ui` writes messages.json from it. Names of operators and tables are never translated.
 */

import { effect, signal } from '@preact/signals';
import messages from './messages.json';

export type Key = keyof typeof messages;
export type Language = 'en' | 'zh';
export const LANGUAGES: readonly Language[] = ['en', 'zh'];

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
  const text = messages[key][language.value];
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** As `t`, for keys that are put together; null where there is no such sentence. */
export function maybe(key: string): string | null {
  return key in messages ? t(key as Key) : null;
}

function chosen(): Language {
  const asked = new URLSearchParams(location.search).get('lang') ?? localStorage.getItem(KEPT_AS);
  if (asked === 'en' || asked === 'zh') return asked;
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en';
}
