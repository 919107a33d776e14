/** Rows by what a page asks, as strobe/web/tables.py selects them: where, search, order, pages. */

import type { Cell, Column } from '../api';
import type { HeldTable } from './held';

type Row = readonly Cell[];
type Test = (row: Row) => boolean;

export interface Selected {
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  /** Rows that match, of which `rows` may be a page. */
  readonly total: number;
  /** Rows of the whole run, where the file holds fewer. */
  readonly cut_from?: number;
}

/** Null where a condition names a column that the table does not have. */
export function select(table: HeldTable, asked: URLSearchParams): Selected | null {
  const tests = conditions(table.columns, asked);
  if (tests === null) return null;
  const matching = table.rows.filter((row) => tests.every((test) => test(row)));
  const ordered = inOrder(matching, table.columns, asked);
  const offset = Number(asked.get('offset') ?? 0);
  const limit = Number(asked.get('limit') ?? Infinity);
  return {
    columns: table.columns,
    rows: ordered.slice(offset, offset + limit),
    total: ordered.length,
    ...(table.total > table.rows.length ? { cut_from: table.total } : {}),
  };
}

function conditions(columns: readonly Column[], asked: URLSearchParams): Test[] | null {
  const tests: Test[] = [];
  for (const part of parts(asked.get('where') ?? '')) {
    const [, name = '', operation = '', value = ''] = /^(\w+):(\w+):?(.*)$/s.exec(part) ?? [];
    const at = columns.findIndex((column) => column.name === name);
    if (at < 0) return null;
    tests.push((row) => holds(row[at] ?? null, operation, value));
  }
  for (const name of ['rank', 'step'] as const) {
    const at = columns.findIndex((column) => column.name === name);
    const wanted = name === 'rank' ? asked.get('rank') : asked.get('steps');
    if (at < 0 || wanted === null) continue;
    const [first = 0, last = first] = wanted.split(':').map(Number);
    tests.push((row) => Number(row[at]) >= first && Number(row[at]) <= last);
  }
  const search = bare(asked.get('q') ?? '');
  if (search !== '') {
    const texts = columns.flatMap((column, at) => (column.type === 'str' ? [at] : []));
    tests.push((row) => texts.some((at) => bare(String(row[at] ?? '')).includes(search)));
  }
  return tests;
}

function parts(where: string): string[] {
  return where.split(/,(?=\w+:(?:eq|ne|lt|le|gt|ge|has|in|null|known)(?::|,|$))/).filter(Boolean);
}

function holds(cell: Cell, operation: string, value: string): boolean {
  if (operation === 'null') return cell === null;
  if (operation === 'known') return cell !== null;
  if (cell === null) return false;
  if (operation === 'has') return String(cell).toLowerCase().includes(value.toLowerCase());
  if (operation === 'in') return value.split('|').some((one) => equals(cell, one));
  if (operation === 'eq' || operation === 'ne') return equals(cell, value) === (operation === 'eq');
  const [here, there] = typeof cell === 'number' ? [cell, Number(value)] : [String(cell), value];
  if (operation === 'lt') return here < there;
  if (operation === 'le') return here <= there;
  return operation === 'gt' ? here > there : here >= there;
}

function equals(cell: Cell, value: string): boolean {
  if (typeof cell === 'number') return cell === Number(value);
  if (typeof cell === 'boolean') return cell === /^(1|true|yes)$/.test(value);
  return String(cell) === value;
}

function inOrder(
  rows: readonly Row[],
  columns: readonly Column[],
  asked: URLSearchParams,
): readonly Row[] {
  const at = columns.findIndex((column) => column.name === asked.get('order'));
  if (at < 0) return rows;
  const way = /^(1|true)$/.test(asked.get('desc') ?? '') ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [one[at] ?? null, other[at] ?? null];
    // What is not known comes last, whichever way.
    if (a === null || b === null) return a === null ? (b === null ? 0 : 1) : -1;
    return way * (a < b ? -1 : a > b ? 1 : 0);
  });
}

/** Case and separators aside, as the server searches. */
function bare(text: string): string {
  return text.toLowerCase().replace(/[\s_:.-]+/g, '');
}
