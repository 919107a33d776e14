import { afterEach, expect, test } from 'vitest';
import { language, maybe, setLanguage, t, type Key } from '../src/i18n';
import messages from '../src/i18n/messages.json';

afterEach(() => setLanguage('en'));

test('a sentence has its values, and changes with the language', () => {
  expect(t('table.rows', { count: '1,234' })).toBe(
    messages['table.rows'].en.replace('{count}', '1,234'),
  );
  setLanguage('zh');
  expect(t('table.rows', { count: 5 })).toBe(messages['table.rows'].zh.replace('{count}', '5'));
  expect(document.documentElement.lang).toBe('zh-CN');
});

test('the language is kept for the next visit', () => {
  setLanguage('zh');
  expect(localStorage.getItem('strobe.language')).toBe('zh');
  expect(language.value).toBe('zh');
});

test('a value that is missing leaves its name, so that it is noticed', () => {
  expect(t('table.rows')).toBe(messages['table.rows'].en);
});

test('a key that is put together may have no sentence', () => {
  expect(maybe('no.such.key')).toBeNull();
  expect(maybe('table.rows')).not.toBeNull();
});

test('both languages of every sentence have the same values', () => {
  const values = (text: string) => [...new Set(text.match(/\{\w+\}/g) ?? [])].sort();
  for (const key of Object.keys(messages) as Key[])
    expect(values(messages[key].zh), key).toEqual(values(messages[key].en));
});
