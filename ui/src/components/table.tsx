/** A table of a run. The server sorts, searches, filters and cuts it; here are only the rows in sight. */

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import {
  asFailure,
  get,
  ofRun,
  type Cell,
  type Column,
  type Failure,
  type Parameters,
  type Progress,
  type TableAnswer,
} from '../api';
import { useGrowing } from '../growing';
import { t } from '../i18n';
import { route, setQuery } from '../router';
import * as units from '../units';
import * as cells from './cells';
import { Cut } from './cut';
import { FailureNote, ProgressNote } from './loaded';
import { fileLink } from './saving';
import { ColumnPicker, FilterBar, type Filter, filtersFrom, filtersToText } from './table_tools';
import './table.css';

export type Row = Readonly<Record<string, Cell>>;

interface Props {
  readonly run: string;
  /** Any stored table or analysis. */
  readonly name: string;
  /** What is asked of it besides what the reader chooses: rank, steps, options of the analysis. */
  readonly parameters?: Parameters;
  /** Conditions that hold always: `device:eq:cpu`. */
  readonly where?: readonly string[];
  /** The columns shown at first, in this order; the reader may choose others. */
  readonly columns: readonly string[];
  /** Under this name the reader's choices stand in the address; one for each table of a page. */
  readonly id: string;
  /** Other headings than those of the columns' names. */
  readonly headings?: Readonly<Record<string, string>> | undefined;
  /** The accessible name. */
  readonly label: string;
  readonly order?: string;
  readonly isDescending?: boolean;
  /** Rows seen at once. */
  readonly rows?: number;
  /** The table is what the page is about: as high as the window leaves room for. */
  readonly isTall?: boolean;
  readonly onRow?: (row: Row) => void;
  readonly isSelected?: (row: Row) => boolean;
  /** Other content for the cells of a column. */
  readonly cell?: (column: string, row: Row) => ComponentChildren | undefined;
  /** In place of an empty table. */
  readonly empty?: ComponentChildren;
  readonly hasSearch?: boolean;
}

const PAGE_ROWS = 200;
const ROW_PX = 26;
/** Browsers cannot scroll an area higher than this many rows would be. */
const MOST_ROWS = 600_000;
/** Rows beyond the edge that are there before they are scrolled into sight. */
const MARGIN_ROWS = 8;
const TYPING_MS = 250;
/** What surrounds a table that fills its page: the head, the title, the tools. */
const AROUND_PX = 290;

export function TableView(props: Props) {
  const { run, name, id, label } = props;
  const choice = readChoice(props);
  const parameters = asked(props, choice);
  const pages = usePages(run, name, parameters);
  const scroller = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const question = JSON.stringify([name, parameters]);
  useEffect(() => {
    scroller.current?.scrollTo({ top: 0 });
    setTop(0);
  }, [question]);

  const { answer, total, failure, progress } = pages;
  const seen = props.isTall
    ? Math.max(props.rows ?? 14, Math.floor((innerHeight - AROUND_PX) / ROW_PX))
    : (props.rows ?? 14);
  const first = Math.max(0, Math.floor(top / ROW_PX) - MARGIN_ROWS);
  const last = Math.min(total, MOST_ROWS, first + seen + 2 * MARGIN_ROWS);
  useEffect(() => pages.want(first, last), [first, last, question]);

  if (failure !== null) return <FailureNote failure={failure} />;
  if (answer === null) return <ProgressNote progress={progress} />;
  if (total === 0 && choice.q === '' && choice.filters.length === 0 && props.empty !== undefined)
    return <>{props.empty}</>;
  const shown = shownColumns(answer.columns, choice.columns);
  return (
    <div class="table-view" aria-busy={pages.isRefreshing}>
      <Tools
        {...props}
        columns={props.columns}
        answer={answer}
        choice={choice}
        total={total}
        parameters={parameters}
      />
      <div
        class="table-scroller"
        ref={scroller}
        style={{ height: `${(Math.min(seen, Math.max(total, 1)) + 1) * ROW_PX + 14}px` }}
        tabIndex={0}
        role="group"
        aria-label={label}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      >
        <table
          class={pages.isRefreshing ? 'is-refreshing' : ''}
          aria-rowcount={total + 1}
          style={{ minWidth: `${width(shown)}px` }}
        >
          <colgroup>
            {shown.map((column) => (
              <col key={column.name} style={{ width: columnWidth(column) ?? 'auto' }} />
            ))}
          </colgroup>
          <thead>
            <tr aria-rowindex={1}>
              {shown.map((column) => (
                <Heading
                  key={column.name}
                  column={column}
                  title={props.headings?.[column.name]}
                  choice={choice}
                  id={id}
                />
              ))}
            </tr>
          </thead>
          <tbody>
            {first > 0 && (
              <tr class="table-spacer" style={{ height: `${first * ROW_PX}px` }} aria-hidden="true">
                <td colSpan={shown.length} />
              </tr>
            )}
            {range(first, last).map((at) => (
              <TableRow key={at} at={at} row={pages.row(at)} shown={shown} props={props} />
            ))}
            {last < Math.min(total, MOST_ROWS) && (
              <tr
                class="table-spacer"
                style={{ height: `${(Math.min(total, MOST_ROWS) - last) * ROW_PX}px` }}
                aria-hidden="true"
              >
                <td colSpan={shown.length} />
              </tr>
            )}
          </tbody>
        </table>
        {total === 0 && <p class="table-nothing dim">{t('table.nothing')}</p>}
      </div>
      {total > MOST_ROWS && (
        <p class="dim small">{t('table.tooMany', { count: units.count(MOST_ROWS) })}</p>
      )}
    </div>
  );
}

function Tools(
  props: Props & { answer: TableAnswer; choice: Choice; total: number; parameters: Parameters },
) {
  const { id, answer, choice, total, run, name, parameters } = props;
  const [typed, setTyped] = useState(choice.q);
  const timer = useRef(0);
  const search = (text: string) => {
    setTyped(text);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setQuery({ [`${id}.q`]: text.trim() }), TYPING_MS);
  };
  useEffect(() => setTyped(choice.q), [choice.q]);
  return (
    <div class="table-tools">
      {props.hasSearch !== false && (
        <input
          type="search"
          value={typed}
          placeholder={t('table.search')}
          aria-label={t('table.searchIn', { table: props.label })}
          onInput={(event) => search(event.currentTarget.value)}
        />
      )}
      <FilterBar
        columns={answer.columns}
        filters={choice.filters}
        onChange={(filters) => setQuery({ [`${id}.where`]: filtersToText(filters) })}
      />
      <span class="table-count dim small" role="status">
        {answer.cut_from === undefined
          ? t(total === 1 ? 'table.oneRow' : 'table.rows', { count: units.count(total) })
          : t('report.cut', { count: units.count(total), all: units.count(answer.cut_from) })}
      </span>
      <ColumnPicker
        columns={answer.columns}
        chosen={choice.columns}
        initial={props.columns}
        onChange={(columns) =>
          setQuery({ [`${id}.columns`]: columns === null ? null : columns.join(' ') })
        }
      />
      <a class="button" {...fileLink(run, name, parameters, 'csv')}>
        CSV
      </a>
      <a class="button" {...fileLink(run, name, parameters, 'json-file')}>
        JSON
      </a>
    </div>
  );
}

function Heading({
  column,
  title,
  choice,
  id,
}: {
  column: Column;
  title: string | undefined;
  choice: Choice;
  id: string;
}) {
  const isSorted = choice.order === column.name;
  const sort = () => {
    // First the way one mostly wants: the most of a number, the first of the alphabet.
    const isDescending = isSorted
      ? !choice.isDescending
      : cells.isNumber(column) && column.name !== 'step';
    setQuery({ [`${id}.order`]: column.name, [`${id}.desc`]: isDescending ? '1' : '0' });
  };
  return (
    <th
      scope="col"
      class={cells.isNumber(column) ? 'number' : ''}
      aria-sort={isSorted ? (choice.isDescending ? 'descending' : 'ascending') : undefined}
    >
      <button type="button" title={column.doc} onClick={sort}>
        <span>{title ?? cells.heading(column)}</span>
        <span class="table-arrow" aria-hidden="true">
          {isSorted ? (choice.isDescending ? '▾' : '▴') : ''}
        </span>
      </button>
    </th>
  );
}

function TableRow({
  at,
  row,
  shown,
  props,
}: {
  at: number;
  row: Row | undefined;
  shown: readonly Column[];
  props: Props;
}) {
  if (row === undefined)
    return (
      <tr aria-rowindex={at + 2} class="table-waiting">
        <td colSpan={shown.length}>…</td>
      </tr>
    );
  const isSelected = props.isSelected?.(row) ?? false;
  const choose = props.onRow && (() => props.onRow?.(row));
  return (
    <tr
      aria-rowindex={at + 2}
      aria-selected={props.onRow ? isSelected : undefined}
      class={`${choose ? 'is-clickable' : ''} ${isSelected ? 'is-selected' : ''}`}
      tabIndex={choose ? 0 : undefined}
      onClick={choose}
      onKeyDown={
        choose &&
        ((event: KeyboardEvent) => {
          if (event.key === 'Enter' || event.key === ' ') {
            event.preventDefault();
            choose();
          } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
            event.preventDefault();
            const row = event.currentTarget as HTMLElement;
            const next =
              event.key === 'ArrowDown' ? row.nextElementSibling : row.previousElementSibling;
            (next as HTMLElement | null)?.focus();
          }
        })
      }
    >
      {shown.map((column) => {
        const text = cells.text(column, row[column.name]);
        const special = props.cell?.(column.name, row);
        return (
          <td
            key={column.name}
            class={cells.isNumber(column) ? 'number' : isCode(column) ? 'mono' : ''}
            title={special === undefined && text.length > 8 ? text : undefined}
          >
            {special ??
              (cells.isShare(column) && typeof row[column.name] === 'number' ? (
                <Share ratio={row[column.name] as number} text={text} />
              ) : isName(column) ? (
                <Cut text={text} tail={/scope$/.test(column.name) ? 20 : 14} />
              ) : (
                text
              ))}
          </td>
        );
      })}
    </tr>
  );
}

function Share({ ratio, text }: { ratio: number; text: string }) {
  return (
    <span class="share">
      <span
        class="share-bar"
        style={{ width: `calc(${Math.max(0, Math.min(1, ratio))} * (100% - 42px))` }}
      />
      <span class="share-text">{text}</span>
    </span>
  );
}

interface Choice {
  readonly q: string;
  readonly order: string | null;
  readonly isDescending: boolean;
  readonly filters: readonly Filter[];
  readonly columns: readonly string[];
}

function readChoice({ id, order, isDescending, columns }: Props): Choice {
  const query = route.value.query;
  const chosen = query[`${id}.order`];
  return {
    q: query[`${id}.q`] ?? '',
    order: chosen ?? order ?? null,
    isDescending: chosen === undefined ? (isDescending ?? false) : query[`${id}.desc`] === '1',
    filters: filtersFrom(query[`${id}.where`] ?? ''),
    columns: query[`${id}.columns`]?.split(' ') ?? columns,
  };
}

function asked({ parameters, where }: Props, choice: Choice): Parameters {
  const conditions = [...(where ?? []), filtersToText(choice.filters)].filter(Boolean);
  return {
    ...parameters,
    q: choice.q,
    order: choice.order,
    desc: choice.order === null ? null : choice.isDescending,
    where: conditions.join(','),
  };
}

function shownColumns(all: readonly Column[], chosen: readonly string[]): Column[] {
  return chosen.flatMap((name) => all.filter((column) => column.name === name));
}

/** The pages of rows that were in sight so far. A new question keeps the old rows until its answer comes, and so does a run that grows. */
function usePages(run: string, name: string, parameters: Parameters) {
  const question = JSON.stringify([run, name, parameters]);
  const pages = useRef(new Map<number, TableAnswer>());
  const asking = useRef(new Map<number, AbortController>());
  const { revision } = useGrowing(run);
  const asked = useRef('');
  const [state, setState] = useState<{
    question: string;
    failure: Failure | null;
    progress: Progress | null;
    version: number;
  }>({ question: '', failure: null, progress: null, version: 0 });

  const fetchPage = (number: number, isQuiet = false) => {
    if (asking.current.has(number)) return;
    const stop = new AbortController();
    asking.current.set(number, stop);
    const isFirst = number === 0;
    get<TableAnswer>(
      ofRun(run, `table/${name}`),
      { ...parameters, limit: PAGE_ROWS, offset: number * PAGE_ROWS },
      {
        signal: stop.signal,
        onProgress: (progress) => isFirst && setState((now) => ({ ...now, progress })),
      },
    ).then(
      (answer) => {
        if (isFirst && !isQuiet) pages.current.clear();
        pages.current.set(number, answer);
        setState((now) => ({ question, failure: null, progress: null, version: now.version + 1 }));
      },
      (error: unknown) => {
        if (!stop.signal.aborted && !isQuiet)
          setState((now) => ({ ...now, question, failure: asFailure(error) }));
      },
    );
  };
  useEffect(() => {
    const isQuiet = asked.current === question;
    asked.current = question;
    // All pages there are: rows of two answers must not stand below each other.
    for (const number of isQuiet ? new Set([0, ...pages.current.keys()]) : [0])
      fetchPage(number, isQuiet);
    return () => {
      for (const stop of asking.current.values()) stop.abort();
      asking.current.clear();
    };
  }, [question, revision]);

  const answer = pages.current.get(0) ?? null;
  return {
    answer,
    total: answer?.total ?? 0,
    failure: state.failure,
    progress: state.progress,
    isRefreshing: state.question !== question,
    row: (at: number): Row | undefined => {
      const page = pages.current.get(Math.floor(at / PAGE_ROWS));
      const values = page?.rows[at % PAGE_ROWS];
      if (page === undefined || values === undefined) return undefined;
      return Object.fromEntries(
        page.columns.map((column, index) => [column.name, values[index] ?? null]),
      );
    },
    want: (first: number, last: number) => {
      if (state.question !== question) return;
      for (let page = Math.floor(first / PAGE_ROWS); page * PAGE_ROWS < last; page++)
        fetchPage(page);
    },
  };
}

/** Names that often begin alike. */
function isName(column: Column): boolean {
  return column.type === 'str' && /^(name|scope|operator|forward_name)$/.test(column.name);
}

function isCode(column: Column): boolean {
  return (
    column.type === 'str' &&
    /^(name|scope|type|operator|forward_name|input_shapes|output_shapes|input_dtypes|class)$/.test(
      column.name,
    )
  );
}

/** Numbers and single words need little room; what is left belongs to names. Null: what is left. */
function columnPx(column: Column): number | null {
  const heading = cells.heading(column).length * HEADING_LETTER_PX + 30;
  if (column.type === 'bool' || IS_SMALL.test(column.name)) return Math.max(64, heading);
  if (cells.isShare(column)) return Math.max(104, heading);
  if (/(^|_)ts_ns$|per_s$|^address$/.test(column.name)) return Math.max(118, heading);
  if (cells.isNumber(column)) return Math.max(92, heading);
  if (/^(stage|feeds)$/.test(column.name)) return Math.max(124, heading);
  return IS_WORD.test(column.name) ? Math.max(96, heading) : null;
}

const HEADING_LETTER_PX = 8;
const IS_SMALL = /^(rank|step|loader|worker|position)$/;
const IS_WORD = /^(direction|kind|device|stage|class)$/;
/** Names shorter than this cannot be told apart. */
const LEAST_NAME_PX = 210;
const LEAST_TEXT_PX = 130;

function columnWidth(column: Column): string | undefined {
  const px = columnPx(column);
  return px === null ? undefined : `${px}px`;
}

function width(columns: readonly Column[]): number {
  return columns.reduce(
    (sum, column) =>
      sum +
      (columnPx(column) ?? (/^(name|scope)$/.test(column.name) ? LEAST_NAME_PX : LEAST_TEXT_PX)),
    0,
  );
}

function range(first: number, last: number): number[] {
  return Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index);
}
