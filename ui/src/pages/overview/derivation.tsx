/** How a number came about: what was measured, what was taken off, what is left. */

import { sentence } from '../../components/words';
import { maybe, t } from '../../i18n';
import * as units from '../../units';

type Value = string | number | boolean | null;

/** Sentences in order, or figures by their names, whose units end the names. */
export type Derived = readonly string[] | Readonly<Record<string, Value>>;

export function Derivation({ of, derived, said }: { of: string; derived: Derived; said: (text: string) => string }) {
  const lines = Array.isArray(derived)
    ? (derived as readonly string[]).map((text) => ['', sentence(said(text))] as const)
    : Object.entries(derived as Readonly<Record<string, Value>>).filter(([, value]) => value !== null).map(([name, value]) => [titleOf(name), shown(name, value)] as const);
  if (lines.length === 0) return null;
  return (
    <details class="derivation">
      <summary>{t('overview.derivation', { of })}</summary>
      <ol>
        {lines.map(([title, text]) => <li key={`${title} ${text}`}>{title !== '' && <span class="derivation-what">{title}</span>}<span class={title === '' ? undefined : 'number'}>{text}</span></li>)}
      </ol>
    </details>
  );
}

function titleOf(name: string): string {
  const known = maybe(`overview.derived.${name}`) ?? maybe(`column.${name}`);
  if (known !== null) return known;
  return sentence(`${name.replace(/^is_/, '').replace(/_(ns|bytes)$/, '').replaceAll('_', ' ')} `).trim();
}

/** A value by the unit that ends its column's name. */
export function shown(name: string, value: Value): string {
  if (value === null) return '';
  if (typeof value === 'boolean') return value ? '✓' : '';
  if (typeof value === 'string') return value;
  if (name === 'ts_ns') return units.moment(value);
  if (name.endsWith('_ns')) return units.duration(value);
  if (name.endsWith('bytes')) return units.size(value);
  if (name.endsWith('share') || name.endsWith('_ratio')) return units.percent(value);
  return /(^|_)(id|step|rank|line|worker|position|loader)$/.test(name) ? String(value) : units.count(value);
}
