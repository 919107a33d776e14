import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { t } from '../i18n';
import { route, setQuery } from '../router';
import { Save } from './save';
import './plain_table.css';

export interface PlainColumn<Row> {
  readonly name: string;
  readonly title: string;
  readonly doc?: string;
  readonly isNumber?: boolean;
  /** What is sorted by and saved. */
  readonly value: (row: Row) => string | number | boolean | null | undefined;
  /** What is shown, if not the value. */
  readonly show?: (row: Row) => ComponentChildren;
  /** Takes what width is left, and cuts what is too long. */
  readonly isWide?: boolean;
  readonly isNeverSorted?: boolean;
  /** Left out where the window is narrow. */
  readonly isMinor?: boolean;
  /** Left out on phones, so that what matters more is seen there. */
  readonly isNotOnPhones?: boolean;
}

interface Props<Row> {
  /** Names the table in the address (its order) and in the files that are saved. */
  readonly name: string;
  readonly caption: string;
  readonly columns: readonly PlainColumn<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
  /** Column to sort by at first; with a minus, the biggest first. Without, rows stay as they are given. */
  readonly sort?: string;
  readonly isSelected?: (row: Row) => boolean;
  readonly onOpen?: (row: Row) => void;
  readonly hasSave?: boolean;
}

/** A table of few rows that are all here, sorted in the page. Long ones: components/table. */
export function PlainTable<Row>({
  name,
  caption,
  columns,
  rows,
  keyOf,
  sort = '',
  isSelected,
  onOpen,
  hasSave = true,
}: Props<Row>) {
  const key = `${name}.sort`;
  const order = route.value.query[key] ?? sort;
  const sorted = useMemo(() => sortedBy(rows, columns, order), [rows, columns, order]);
  return (
    <div class="plain-table-frame">
      <table class="plain-table">
        <caption class="only-read-aloud">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <Head
                key={column.name}
                column={column}
                order={order}
                onSort={(next) => setQuery({ [key]: next === sort ? null : next })}
              />
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.map((row) => (
            <tr
              key={keyOf(row)}
              class={isSelected?.(row) ? 'is-selected' : undefined}
              onDblClick={() => onOpen?.(row)}
            >
              {columns.map((column) => (
                <td
                  key={column.name}
                  class={classOf(column)}
                  title={column.isWide ? String(column.value(row) ?? '') : undefined}
                >
                  {column.show ? column.show(row) : column.value(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {hasSave && <Save name={name} columns={columns} rows={sorted} />}
    </div>
  );
}

function Head<Row>({
  column,
  order,
  onSort,
}: {
  column: PlainColumn<Row>;
  order: string;
  onSort: (order: string) => void;
}) {
  const isBy = order.replace(/^-/, '') === column.name;
  const isDown = order.startsWith('-');
  if (column.isNeverSorted)
    return (
      <th scope="col" class={classOf(column)} title={column.doc}>
        {column.title || <span class="only-read-aloud">{t('shell.actions')}</span>}
      </th>
    );
  // Numbers are wanted biggest first, texts from A.
  const first = column.isNumber ? `-${column.name}` : column.name;
  const second = column.isNumber ? column.name : `-${column.name}`;
  return (
    <th
      scope="col"
      class={classOf(column)}
      title={column.doc}
      aria-sort={isBy ? (isDown ? 'descending' : 'ascending') : undefined}
    >
      <button type="button" class="sorter" onClick={() => onSort(order === first ? second : first)}>
        {column.title}
        <span aria-hidden="true" class="sort-sign">
          {isBy ? (isDown ? '▾' : '▴') : ''}
        </span>
      </button>
    </th>
  );
}

function classOf(column: {
  isNumber?: boolean;
  isWide?: boolean;
  isMinor?: boolean;
  isNotOnPhones?: boolean;
}): string | undefined {
  return (
    [
      column.isNumber && 'number',
      column.isWide && 'is-wide',
      column.isMinor && 'is-minor',
      column.isNotOnPhones && 'is-not-on-phones',
    ]
      .filter(Boolean)
      .join(' ') || undefined
  );
}

export function sortedBy<Row>(
  rows: readonly Row[],
  columns: readonly PlainColumn<Row>[],
  order: string,
): readonly Row[] {
  const column = columns.find((candidate) => candidate.name === order.replace(/^-/, ''));
  if (column === undefined) return rows;
  const way = order.startsWith('-') ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [column.value(one), column.value(other)];
    // What is not known comes last, whichever way.
    if (a == null || b == null) return a == null ? (b == null ? 0 : 1) : -1;
    return way * (typeof a === 'string' ? a.localeCompare(String(b)) : Number(a) - Number(b));
  });
}
