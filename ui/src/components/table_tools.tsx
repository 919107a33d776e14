/** What stands above a table: filters on its columns, and which columns are shown. */

import { useState } from 'preact/hooks';
import type { Column } from '../api';
import { t, type Key } from '../i18n';
import * as cells from './cells';

export interface Filter {
  readonly column: string;
  readonly operation: string;
  readonly value: string;
}

const OPERATIONS: Readonly<Record<string, string>> = {
  ge: '≥',
  le: '≤',
  eq: '=',
  ne: '≠',
  has: '∋',
};

/** As the address and the server write them: `self_ns:ge:1000,name:has:mm`. */
export function filtersToText(filters: readonly Filter[]): string {
  return filters.map(({ column, operation, value }) => `${column}:${operation}:${value}`).join(',');
}

export function filtersFrom(text: string): Filter[] {
  const parts = text.split(/,(?=\w+:(?:ge|le|eq|ne|has):)/).filter(Boolean);
  return parts.flatMap((part) => {
    const match = /^(\w+):(\w+):(.*)$/s.exec(part);
    return match === null
      ? []
      : [{ column: match[1] ?? '', operation: match[2] ?? '', value: match[3] ?? '' }];
  });
}

export function FilterBar({
  columns,
  filters,
  onChange,
}: {
  columns: readonly Column[];
  filters: readonly Filter[];
  onChange: (filters: readonly Filter[]) => void;
}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div class="filters">
      {filters.map((filter, at) => {
        const text = shown(columns, filter);
        return (
          <button
            key={text}
            type="button"
            class="filter"
            aria-label={t('table.removeFilter', { filter: text })}
            onClick={() => onChange(filters.filter((_, other) => other !== at))}
          >
            {text} <span aria-hidden="true">×</span>
          </button>
        );
      })}
      {isOpen ? (
        <NewFilter
          columns={columns}
          onAdd={(filter) => onChange([...filters, filter])}
          onClose={() => setOpen(false)}
        />
      ) : (
        <button type="button" class="quiet" onClick={() => setOpen(true)}>
          {t('table.filter')}
        </button>
      )}
    </div>
  );
}

function NewFilter({
  columns,
  onAdd,
  onClose,
}: {
  columns: readonly Column[];
  onAdd: (filter: Filter) => void;
  onClose: () => void;
}) {
  const [name, setName] = useState(
    (columns.find((column) => /_ns$/.test(column.name)) ?? columns[0])?.name ?? '',
  );
  const column = columns.find((one) => one.name === name);
  const operations =
    column && cells.isNumber(column) ? ['ge', 'le', 'eq', 'ne'] : ['has', 'eq', 'ne'];
  const [operation, setOperation] = useState('ge');
  const chosen = operations.includes(operation) ? operation : (operations[0] ?? 'eq');
  const [typed, setTyped] = useState('');
  const value = column ? cells.parsed(column, typed) : null;
  const isWrong = typed !== '' && value === null;
  return (
    <form
      class="new-filter"
      onSubmit={(event) => {
        event.preventDefault();
        if (value === null) return;
        onAdd({ column: name, operation: chosen, value });
        onClose();
      }}
      onKeyDown={(event) => event.key === 'Escape' && onClose()}
    >
      <select
        value={name}
        aria-label={t('table.filterColumn')}
        onChange={(event) => setName(event.currentTarget.value)}
      >
        {columns.map((one) => (
          <option key={one.name} value={one.name}>
            {cells.heading(one)}
          </option>
        ))}
      </select>
      <select
        value={chosen}
        aria-label={t('table.filterOperation')}
        onChange={(event) => setOperation(event.currentTarget.value)}
      >
        {operations.map((one) => (
          <option key={one} value={one} title={t(`table.${one}` as Key)}>
            {OPERATIONS[one]} {t(`table.${one}` as Key)}
          </option>
        ))}
      </select>
      <input
        value={typed}
        size={10}
        placeholder={column ? example(column) : ''}
        aria-label={t('table.filterValue')}
        aria-invalid={isWrong}
        ref={(input) => {
          input?.focus();
        }}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
      <button type="submit" disabled={value === null}>
        {t('table.filterAdd')}
      </button>
      <button type="button" class="quiet" onClick={onClose}>
        {t('shell.close')}
      </button>
    </form>
  );
}

function shown(columns: readonly Column[], { column: name, operation, value }: Filter): string {
  const column = columns.find((one) => one.name === name);
  const number = Number(value);
  const text =
    column && cells.isNumber(column) && Number.isFinite(number)
      ? cells.number(name, number)
      : value;
  return `${column ? cells.heading(column) : name} ${OPERATIONS[operation] ?? operation} ${text}`;
}

function example(column: Column): string {
  if (/_ns$/.test(column.name)) return '1.5 ms';
  if (/_bytes$|^bytes$/.test(column.name)) return '2 MiB';
  if (cells.isShare(column)) return '5%';
  return cells.isNumber(column) ? '10' : 'conv';
}

interface PickerProps {
  readonly columns: readonly Column[];
  readonly chosen: readonly string[];
  readonly initial: readonly string[];
  /** Null: as it was at first. */
  readonly onChange: (columns: readonly string[] | null) => void;
}

export function ColumnPicker({ columns, chosen, initial, onChange }: PickerProps) {
  const change = (next: readonly string[]) => {
    const isInitial =
      next.length === initial.length && next.every((name, at) => name === initial[at]);
    onChange(isInitial || next.length === 0 ? null : next);
  };
  const toggle = (name: string) =>
    change(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
  return (
    <details class="picker">
      <summary class="button">{t('table.columns')}</summary>
      <div class="picker-list" role="group" aria-label={t('table.columns')}>
        {columns.map((column) => (
          <label key={column.name} title={column.doc}>
            <input
              type="checkbox"
              checked={chosen.includes(column.name)}
              onChange={() => toggle(column.name)}
            />
            <span>{cells.heading(column)}</span>
            <span class="dim small">{column.doc}</span>
          </label>
        ))}
        <button type="button" class="quiet" onClick={() => onChange(null)}>
          {t('table.columnsAgain')}
        </button>
      </div>
    </details>
  );
}
