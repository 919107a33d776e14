/** A value of a declared column as a person reads it; the same words as strobe/show/text/cells.py. */

import type { Cell, Column } from '../api';
import { maybe } from '../i18n';
import * as units from '../units';

const MOMENTS = /^(ts|freed|peak_ts|oldest_ts|begun|end)_ns$/;
const IDENTITIES =
  /^(id|.*_id|rank|step|loader|worker|.*_step|position|line|pid|process|thread|stream)$/;

export function isNumber(column: Column): boolean {
  return column.type === 'i64' || column.type === 'f64';
}

/** Whether it is a part of a whole, which a bar can show. */
export function isShare(column: Column): boolean {
  return column.type === 'f64' && /(^|_)(share|ratio)$/.test(column.name);
}

/** The heading: in the reader's language where it is known, else the name without its unit. */
export function heading(column: Column): string {
  const known = maybe(`column.${column.name}`);
  if (known !== null) return known;
  const bare = column.name
    .replace(/_per_s$/, '/s')
    .replace(/^is_/, '')
    .replace(column.type === 'str' ? /$^/ : /_(ns|bytes)$/, '')
    .replaceAll('_', ' ');
  return bare.charAt(0).toUpperCase() + bare.slice(1);
}

export function text(column: Column, value: Cell | undefined): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'boolean') return value ? '✓' : '';
  if (typeof value === 'number') return number(column.name, value);
  if (typeof value === 'object') return JSON.stringify(value);
  if (/_shapes$/.test(column.name)) return shapes(value);
  if (/_dtypes$/.test(column.name)) return dtypes(value);
  return value;
}

export function number(name: string, value: number): string {
  // The training process itself.
  if (name === 'worker' && value < 0) return '–';
  if (MOMENTS.test(name)) return units.moment(value);
  if (IDENTITIES.test(name)) return String(value);
  if (name === 'address') return `0x${value.toString(16)}`;
  if (/_ns$/.test(name)) return units.duration(value);
  if (/(^|_)flops_per_s$/.test(name)) return units.rate(value, 'FLOP/s');
  if (/(^|_)bytes_per_s$/.test(name)) return `${units.size(value)}/s`;
  if (/(^|_)flops$/.test(name)) return units.rate(value, 'FLOP');
  if (/(^|_)bytes$/.test(name)) return units.size(value);
  if (/(^|_)(share|ratio)$/.test(name)) return units.percent(value);
  return units.count(value);
}

/** [[8, 16], [], [4]] as 8×16, [], 4. */
export function shapes(json: string): string {
  try {
    return (JSON.parse(json) as unknown[]).map(shape).join(', ');
  } catch {
    return json;
  }
}

function shape(value: unknown): string {
  if (!Array.isArray(value)) return String(value);
  if (value.length === 0) return '·';
  if (value.some(Array.isArray)) return `(${value.map(shape).join(', ')})`;
  return value.join('×');
}

function dtypes(json: string): string {
  try {
    return [...new Set((JSON.parse(json) as string[]).filter(Boolean))].join(', ');
  } catch {
    return json;
  }
}

/** What somebody types as a value of a column, in the column's own unit: 1.5ms, 2 MiB, 30 %. Null if it is none. */
export function parsed(column: Column, typed: string): string | null {
  const value = typed.trim();
  if (!isNumber(column)) return value === '' ? null : value;
  const match = /^([+-]?(?:\d+\.?\d*|\.\d+))\s*([a-zµμ%]*)$/i.exec(value);
  if (match === null) return null;
  const unit = (match[2] ?? '').toLowerCase().replace('μ', 'µ');
  const factor = unit === '' ? 1 : FACTORS[unit];
  if (factor === undefined) return null;
  const result = Number(match[1]) * factor;
  return column.type === 'i64'
    ? String(Math.round(result))
    : String(Number(result.toPrecision(12)));
}

const FACTORS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  ms: 1e6,
  s: 1e9,
  min: 60e9,
  h: 3600e9,
  b: 1,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
  kb: 2 ** 10,
  mb: 2 ** 20,
  gb: 2 ** 30,
  k: 1e3,
  m: 1e6,
  g: 1e9,
  t: 1e12,
  '%': 0.01,
};
