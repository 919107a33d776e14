/** The runs as a table. */

import { useMemo } from 'preact/hooks';
import { PlainTable, type PlainColumn } from '../../components/plain_table';
import { language, maybe, t } from '../../i18n';
import { href } from '../../router';
import * as units from '../../units';
import { frameworks, startedMs, type ListedRun } from './run';

interface Props {
  readonly runs: readonly ListedRun[];
  readonly chosen: readonly string[];
  readonly onChoose: (id: string) => void;
  readonly onChange: (run: ListedRun) => void;
}

export function RunsTable({ runs, chosen, onChoose, onChange }: Props) {
  const columns = useMemo(() => columnsOf(chosen, onChoose, onChange), [chosen, language.value]);
  return (
    <PlainTable
      name="runs"
      caption={t('runs.title')}
      columns={columns}
      rows={runs}
      keyOf={(run) => run.id}
      sort="-started"
      isSelected={(run) => chosen.includes(run.id)}
      onOpen={(run) => (location.hash = href('overview', run.id))}
    />
  );
}

function columnsOf(
  chosen: readonly string[],
  onChoose: (id: string) => void,
  onChange: (run: ListedRun) => void,
): PlainColumn<ListedRun>[] {
  return [
    {
      name: 'chosen',
      title: '',
      isNeverSorted: true,
      value: () => '',
      show: (run) => (
        <input
          type="checkbox"
          checked={chosen.includes(run.id)}
          aria-label={t('runs.choose', { name: run.name })}
          onChange={() => onChoose(run.id)}
        />
      ),
    },
    {
      name: 'name',
      title: t('runs.column.name'),
      value: (run) => run.name,
      show: (run) => <Name run={run} />,
    },
    {
      name: 'state',
      isNotOnPhones: true,
      title: t('runs.column.state'),
      value: (run) => run.state,
      show: (run) => <State state={run.state} />,
    },
    {
      name: 'steps',
      isNotOnPhones: true,
      title: t('runs.column.steps'),
      isNumber: true,
      value: (run) => run.steps,
      show: (run) => units.count(run.steps),
    },
    {
      name: 'step_ns',
      title: t('runs.column.step'),
      doc: t('runs.column.stepDoc'),
      isNumber: true,
      value: (run) => run.step_ns,
      show: (run) => units.duration(run.step_ns),
    },
    {
      name: 'finding',
      title: t('runs.column.finding'),
      isWide: true,
      value: (run) => run.problem ?? run.finding?.title,
      show: (run) => <TopFinding run={run} />,
    },
    {
      name: 'expected_speedup',
      title: t('runs.column.speedup'),
      doc: t('runs.column.speedupDoc'),
      isNumber: true,
      value: (run) => run.finding?.expected_speedup,
      show: (run) => (run.finding ? units.times(run.finding.expected_speedup) : units.UNKNOWN),
    },
    {
      name: 'started',
      isNotOnPhones: true,
      title: t('runs.column.started'),
      value: startedMs,
      show: (run) => <Started run={run} />,
    },
    {
      name: 'ranks',
      isMinor: true,
      title: t('runs.column.ranks'),
      isNumber: true,
      value: (run) => run.ranks,
      show: (run) => units.count(run.ranks),
    },
    { name: 'frameworks', isMinor: true, title: t('runs.column.frameworks'), value: frameworks },
    {
      name: 'size_bytes',
      isMinor: true,
      title: t('runs.column.size'),
      isNumber: true,
      value: (run) => run.size_bytes,
      show: (run) => units.size(run.size_bytes),
    },
    {
      name: 'change',
      title: '',
      isNeverSorted: true,
      value: () => '',
      show: (run) => (
        <button
          type="button"
          class="quiet row-button"
          aria-label={t('runs.actions', { name: run.name })}
          onClick={() => onChange(run)}
        >
          ⋯
        </button>
      ),
    },
  ];
}

function Name({ run }: { run: ListedRun }) {
  const folder = run.id.endsWith(run.name) ? run.id.slice(0, -run.name.length) : '';
  return (
    <span class="run-name">
      <a href={href('overview', run.id)}>
        <span class="dim">{folder}</span>
        {run.name}
      </a>
      {run.tags.map((tag) => (
        <span key={tag} class="tag">
          {tag}
        </span>
      ))}
    </span>
  );
}

export function State({ state }: { state: string }) {
  return <span class={`state state-${state}`}>{maybe(`runs.state.${state}`) ?? state}</span>;
}

function TopFinding({ run }: { run: ListedRun }) {
  if (run.problem !== null) return <span class="bad">{run.problem}</span>;
  if (run.finding !== null)
    return (
      <a class="finding-link" href={href('overview', run.id)}>
        {inShort(run.finding)}
      </a>
    );
  if (run.digest === 'ready') return <span class="dim">{t('runs.nothingFound')}</span>;
  return <span class="dim">{run.digest === 'working' ? t('runs.working') : units.UNKNOWN}</span>;
}

/** What the rule looks for, in short; the figures are in the tooltip and on the page of the run. */
function inShort({ rule, title }: { readonly rule: string; readonly title: string }): string {
  return maybe(`rules.${rule}`) ?? title;
}

function Started({ run }: { run: ListedRun }) {
  const at = startedMs(run);
  if (at === null) return <>{units.UNKNOWN}</>;
  const date = new Date(at);
  const shown = new Intl.DateTimeFormat(language.value, {
    dateStyle: 'medium',
    timeStyle: 'short',
  }).format(date);
  return <time dateTime={date.toISOString()}>{shown}</time>;
}
