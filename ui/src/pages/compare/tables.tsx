/** The comparison in numbers. */

import { useMemo, useState } from 'preact/hooks';
import { PlainTable, type PlainColumn } from '../../components/plain_table';
import { Section } from '../../components/section';
import { PartMark, partTitle } from '../../components/step_bar';
import { language, t } from '../../i18n';
import { route, setQuery } from '../../router';
import * as units from '../../units';
import {
  rowsOf,
  type AmountRow,
  type CauseRow,
  type ComparisonAnswer,
  type OperatorRow,
  type PartRow,
  type SettingRow,
} from './answer';

/** Causes shown at once; what is smaller seldom matters. */
const FIRST_CAUSES = 10;
/** Operators put into the page at first, and at most; the search finds the others. */
const FIRST_OPERATORS = 20;
const MOST_OPERATORS = 500;
/** In the explanation: a part as a whole. */
const ALL_OF_IT = 'all of it';

export function Parts({ answer }: { answer: ComparisonAnswer }) {
  if (rowsOf(answer.explanation).length > 0 && isByPart(answer)) return null;
  const rows = rowsOf<PartRow>(answer.steps).filter((row) => row.a_ns > 0 || row.b_ns > 0);
  const columns: PlainColumn<PartRow>[] = [
    {
      name: 'part',
      title: t('compare.column.part'),
      value: (row) => row.part,
      show: (row) =>
        row.part === 'step' ? <strong>{partTitle(row.part)}</strong> : <Part part={row.part} />,
    },
    ...times<PartRow>(),
    {
      name: 'ratio',
      title: t('compare.column.ratio'),
      isNumber: true,
      value: (row) => row.ratio,
      show: (row) => units.ratio(row.ratio),
    },
    {
      name: 'bar',
      title: '',
      isNeverSorted: true,
      value: () => '',
      show: (row) => <Difference value={row.difference_ns} largest={largestOf(rows)} />,
    },
  ];
  return (
    <Section title={t('compare.parts')}>
      <PlainTable
        name="parts"
        caption={t('compare.parts')}
        columns={columns}
        rows={rows}
        keyOf={(row) => row.part}
      />
    </Section>
  );
}

/** Where operators cannot be compared, the explanation has the parts and nothing else. */
function isByPart(answer: ComparisonAnswer): boolean {
  return rowsOf<CauseRow>(answer.explanation).every((row) => row.what === ALL_OF_IT);
}

function whatColumn(): PlainColumn<CauseRow> {
  return {
    name: 'what',
    title: t('compare.column.what'),
    value: (row) => row.what,
    isWide: true,
    show: (row) => <span class="mono">{row.what}</span>,
  };
}

export function Explanation({ answer }: { answer: ComparisonAnswer }) {
  const [isWhole, setWhole] = useState(false);
  const rows = rowsOf<CauseRow>(answer.explanation);
  const total = rows.reduce((sum, row) => sum + row.difference_ns, 0);
  const largest = largestOf(rows);
  const shown = isWhole ? rows : rows.slice(0, FIRST_CAUSES);
  const columns: PlainColumn<CauseRow>[] = [
    {
      name: 'part',
      title: t('compare.column.part'),
      value: (row) => row.part,
      show: (row) => <Part part={row.part} />,
    },
    ...(isByPart(answer) ? [] : [whatColumn()]),
    ...times<CauseRow>(),
    {
      name: 'share',
      title: t('compare.column.share'),
      isNumber: true,
      value: (row) => row.share,
      show: (row) => units.percent(row.share),
    },
    {
      name: 'bar',
      title: '',
      isNeverSorted: true,
      value: () => '',
      show: (row) => <Difference value={row.difference_ns} largest={largest} />,
    },
  ];
  return (
    <Section
      title={t('compare.explanation')}
      about={t('compare.explanationAbout', { total: units.difference(total) })}
    >
      {rows.length === 0 ? (
        <p>{t('compare.explanationNone')}</p>
      ) : (
        <div>
          <PlainTable
            name="causes"
            caption={t('compare.explanation')}
            columns={columns}
            rows={shown}
            keyOf={(row) => `${row.part} ${row.what}`}
          />
          {shown.length < rows.length && (
            <button type="button" class="quiet" onClick={() => setWhole(true)}>
              {t('compare.more', { n: rows.length - shown.length })}
            </button>
          )}
        </div>
      )}
    </Section>
  );
}

export function Operators({ answer }: { answer: ComparisonAnswer }) {
  const search = route.value.query.q ?? '';
  const rows = useMemo(() => rowsOf<OperatorRow>(answer.operators), [answer]);
  const [most, setMost] = useState(FIRST_OPERATORS);
  const found = useMemo(
    () =>
      rows.filter((row) =>
        `${row.name} ${row.scope ?? ''}`.toLowerCase().includes(search.toLowerCase()),
      ),
    [rows, search],
  );
  const columns = useMemo(
    (): PlainColumn<OperatorRow>[] => [
      {
        name: 'part',
        title: t('compare.column.part'),
        value: (row) => row.part,
        show: (row) => <Part part={row.part} />,
      },
      {
        name: 'name',
        title: t('compare.column.name'),
        value: (row) => row.name,
        isWide: true,
        show: (row) => <span class="mono">{row.name}</span>,
      },
      {
        name: 'scope',
        title: t('compare.column.scope'),
        value: (row) => row.scope,
        show: (row) => <span class="mono">{row.scope}</span>,
      },
      {
        name: 'a_calls',
        title: t('compare.column.callsA'),
        isNumber: true,
        value: (row) => row.a_calls,
        show: (row) => units.count(row.a_calls),
      },
      {
        name: 'b_calls',
        title: t('compare.column.callsB'),
        isNumber: true,
        value: (row) => row.b_calls,
        show: (row) => units.count(row.b_calls),
      },
      ...times<OperatorRow>(),
      {
        name: 'input_shapes',
        title: t('compare.column.shapes'),
        value: (row) => row.input_shapes,
        isWide: true,
        show: (row) => <span class="mono dim">{row.input_shapes}</span>,
      },
    ],
    [language.value],
  );
  const tools = (
    <input
      type="search"
      value={search}
      placeholder={t('compare.search')}
      aria-label={t('compare.search')}
      onInput={(event) => setQuery({ q: event.currentTarget.value })}
    />
  );
  if (rows.length === 0)
    return (
      <Section title={t('compare.operators')}>
        <p>{t('compare.operatorsMissing')}</p>
      </Section>
    );
  return (
    <Section title={t('compare.operators')} about={t('compare.operatorsAbout')} tools={tools}>
      <div>
        <PlainTable
          name="operators"
          caption={t('compare.operators')}
          columns={columns}
          rows={found.slice(0, most)}
          keyOf={(row) => `${row.part} ${row.scope} ${row.name} ${row.input_shapes}`}
        />
        {found.length > most && most < MOST_OPERATORS && (
          <button type="button" class="quiet" onClick={() => setMost(MOST_OPERATORS)}>
            {t('compare.more', { n: Math.min(found.length, MOST_OPERATORS) - most })}
          </button>
        )}
      </div>
    </Section>
  );
}

export function Devices({ answer }: { answer: ComparisonAnswer }) {
  const rows = rowsOf<PartRow>(answer.devices).filter((row) => row.a_ns > 0 || row.b_ns > 0);
  if (rows.length === 0) return null;
  const columns: PlainColumn<PartRow>[] = [
    { name: 'part', title: t('compare.column.part'), value: (row) => row.part },
    ...times<PartRow>(),
  ];
  return (
    <Section title={t('compare.devices')}>
      <PlainTable
        name="devices"
        caption={t('compare.devices')}
        columns={columns}
        rows={rows}
        keyOf={(row) => row.part}
      />
    </Section>
  );
}

export function Amounts({ answer }: { answer: ComparisonAnswer }) {
  const rows = rowsOf<AmountRow>(answer.amounts);
  if (rows.length === 0) return null;
  const columns: PlainColumn<AmountRow>[] = [
    {
      name: 'what',
      title: t('compare.column.what'),
      value: (row) => row.what,
      show: (row) => row.what.replace(/_(bytes|ns|share)$/, '').replaceAll('_', ' '),
    },
    {
      name: 'a',
      title: t('compare.column.a'),
      isNumber: true,
      value: (row) => row.a,
      show: (row) => amount(row.what, row.a),
    },
    {
      name: 'b',
      title: t('compare.column.b'),
      isNumber: true,
      value: (row) => row.b,
      show: (row) => amount(row.what, row.b),
    },
    {
      name: 'ratio',
      title: t('compare.column.ratio'),
      isNumber: true,
      value: (row) => ratio(row),
      show: (row) => units.ratio(ratio(row)),
    },
  ];
  return (
    <Section title={t('compare.amounts')}>
      <PlainTable
        name="amounts"
        caption={t('compare.amounts')}
        columns={columns}
        rows={rows}
        keyOf={(row) => row.what}
      />
    </Section>
  );
}

export function Settings({ answer }: { answer: ComparisonAnswer }) {
  const rows = rowsOf<SettingRow>(answer.settings);
  const columns: PlainColumn<SettingRow>[] = [
    { name: 'what', title: t('compare.column.what'), value: (row) => row.what },
    {
      name: 'a',
      title: t('compare.column.a'),
      value: (row) => row.a,
      isWide: true,
      show: (row) => <code>{row.a ?? units.UNKNOWN}</code>,
    },
    {
      name: 'b',
      title: t('compare.column.b'),
      value: (row) => row.b,
      isWide: true,
      show: (row) => <code>{row.b ?? units.UNKNOWN}</code>,
    },
  ];
  return (
    <Section title={t('compare.settings')}>
      {rows.length === 0 ? (
        <p class="dim">{t('compare.settingsNone')}</p>
      ) : (
        <PlainTable
          name="settings"
          caption={t('compare.settings')}
          columns={columns}
          rows={rows}
          keyOf={(row) => row.what}
        />
      )}
    </Section>
  );
}

function times<Row extends PartRow>(): PlainColumn<Row>[] {
  return [
    {
      name: 'a_ns',
      title: t('compare.column.a'),
      isNumber: true,
      value: (row) => row.a_ns,
      show: (row) => units.duration(row.a_ns),
    },
    {
      name: 'b_ns',
      title: t('compare.column.b'),
      isNumber: true,
      value: (row) => row.b_ns,
      show: (row) => units.duration(row.b_ns),
    },
    {
      name: 'difference_ns',
      title: t('compare.column.difference'),
      isNumber: true,
      value: (row) => row.difference_ns,
      show: (row) => <Signed ns={row.difference_ns} />,
    },
  ];
}

/** Waiting for data stands as a part of its own here: the gap is what is left of it. */
function Part({ part }: { part: string }) {
  return (
    <>
      <PartMark part={part} />
      {part === 'data' ? t('column.data_ns') : partTitle(part)}
    </>
  );
}

function Signed({ ns }: { ns: number }) {
  return (
    <span class={ns > 0 ? 'is-slower' : ns < 0 ? 'is-faster' : undefined}>
      {units.difference(ns)}
    </span>
  );
}

/** A bar to the left for what got faster, to the right for what got slower. */
function Difference({ value, largest }: { value: number; largest: number }) {
  const width = `${largest > 0 ? (Math.abs(value) / largest) * 50 : 0}%`;
  const side = value < 0 ? { right: '50%' } : { left: '50%' };
  return (
    <span
      class="difference"
      role="img"
      aria-label={t(value > 0 ? 'compare.slower' : 'compare.faster')}
    >
      <span class={value > 0 ? 'bar-slower' : 'bar-faster'} style={{ width, ...side }} />
    </span>
  );
}

function largestOf(rows: readonly PartRow[]): number {
  return Math.max(...rows.map((row) => Math.abs(row.difference_ns)), 0);
}

function ratio(row: AmountRow): number | null {
  return row.a && row.b !== null ? row.b / row.a : null;
}

function amount(name: string, value: number | null): string {
  if (name.endsWith('_bytes')) return units.size(value);
  if (name.endsWith('_ns')) return units.duration(value);
  if (name.endsWith('_share')) return units.percent(value);
  return units.count(value);
}
