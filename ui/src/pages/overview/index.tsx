/** The verdict and the findings first, then where the time goes. */

import { useAnswer, ofRun, records } from '../../api';
import { Command, Loaded } from '../../components/loaded';
import { PlainTable, type PlainColumn } from '../../components/plain_table';
import { Section } from '../../components/section';
import { useGrowing } from '../../growing';
import { language, maybe, t } from '../../i18n';
import * as units from '../../units';
import type { Advice, Summary } from './answers';
import { Findings } from './findings';
import { useTable } from '../../tables';
import {
  Devices,
  isMeasured,
  Kernels,
  Machine,
  Modules,
  OperatorTypes,
  Pipeline,
  StepParts,
  type Stage,
} from './pictures';
import { Preview } from './preview';
import './overview.css';

/** A live run is judged again this often: it takes more than drawing its curves. */
const REFRESH_MS = 10_000;

export default function Overview({ run }: { run: string }) {
  const { revision } = useGrowing(run, REFRESH_MS);
  const advice = useAnswer<Advice>(ofRun(run, 'advice'), {}, revision);
  const answer = useAnswer<{ summary: Summary }>(ofRun(run, 'summary'), {}, revision);
  return (
    <div class="page overview">
      <h1 class="only-read-aloud">{t('overview.title')}</h1>
      {answer.state === 'ready' ? <Facts summary={answer.value.summary} /> : null}
      <Loaded of={advice}>{(value) => <Findings run={run} advice={value} />}</Loaded>
      {/* A run that cannot be read is reported once, above. */}
      {answer.state === 'failed' ? null : answer.state === 'loading' ? (
        <Skeleton />
      ) : (
        <Pictures run={run} summary={answer.value.summary} />
      )}
    </div>
  );
}

/** The place of what is still being worked out, so that the page does not jump. */
function Skeleton() {
  return (
    <div class="skeleton" aria-hidden="true">
      <div />
      <div />
      <div class="skeleton-cards">
        <div />
        <div />
      </div>
    </div>
  );
}

function Pictures({ run, summary }: { run: string; summary: Summary }) {
  const pipeline = useTable(run, 'data-pipeline', { limit: 40 });
  const stages = pipeline.state === 'ready' ? records<Stage>(pipeline.value) : null;
  return (
    <div class="stack">
      <StepParts run={run} summary={summary} />
      <Preview run={run} />
      <div class="cards">
        <Kernels run={run} summary={summary} />
        <OperatorTypes run={run} summary={summary} />
        <Modules run={run} summary={summary} />
        <Devices summary={summary} />
        <Pipeline run={run} stages={stages ?? []} />
        <Machine summary={summary} />
      </div>
      {stages !== null && <NotRecorded summary={summary} hasPipeline={stages.length > 0} />}
      {summary.problems.length > 0 && <Problems problems={summary.problems} />}
    </div>
  );
}

/** What this run lacks, in one place instead of a card each. */
function NotRecorded({ summary, hasPipeline }: { summary: Summary; hasPipeline: boolean }) {
  const missing = [
    ...(summary.operator_types.length === 0 && summary.kernels.length === 0
      ? [t('overview.types')]
      : []),
    ...(hasPipeline ? [] : [t('pipeline.title')]),
    ...(isMeasured(summary) ? [] : [t('overview.machine')]),
  ].map((title) => title.replace(/（.*）/, ''));
  if (missing.length === 0) return null;
  return (
    <Section title={t('overview.notRecorded')}>
      <div class="not-recorded">
        <p>
          {t('overview.notRecordedWhat', {
            what: new Intl.ListFormat(language.value, { type: 'conjunction' }).format(missing),
          })}
        </p>
        <Command text="strobe run train.py" />
      </div>
    </Section>
  );
}

function Facts({ summary }: { summary: Summary }) {
  const { run, recorded } = summary;
  const facts: [string, string][] = [
    [t('overview.fact.command'), run.command.map(shortened).join(' ')],
    [t('overview.fact.recordedBy'), run.recorded_by],
    [
      t('overview.fact.frameworks'),
      Object.entries(run.frameworks)
        .map(([name, version]) => `${name} ${version}`.trim())
        .join(', '),
    ],
    [t('overview.fact.hosts'), run.hosts.join(', ')],
    [t('overview.fact.ranks'), run.ranks.length > 1 ? units.count(run.ranks.length) : ''],
    [t('overview.fact.steps'), stepsShown(recorded)],
    [t('overview.fact.events'), units.count(recorded.events)],
    [t('overview.fact.length'), run.dur_ns === null ? '' : units.duration(run.dur_ns)],
    [
      t('overview.fact.state'),
      language.value === 'en'
        ? run.state_means
        : (maybe(`runs.state.${run.state}`) ?? run.state_means),
    ],
  ];
  return (
    <dl class="run-facts">
      {facts
        .filter(([, value]) => value !== '')
        .map(([title, value]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd title={value}>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** Imported traces have no windows: there is nothing to say about what is in full. */
function stepsShown({ steps, steps_in_full: full }: Summary['recorded']): string {
  return full === 0 || full === steps
    ? units.count(steps)
    : t('overview.fact.full', { full: units.count(full), all: units.count(steps) });
}

/** A path by its last part. */
function shortened(word: string): string {
  return word.startsWith('/') ? word.split('/').at(-1)! : word;
}

type Problem = Summary['problems'][number];

/** The same warning of several ranks is one line. */
interface Warning {
  readonly what: string;
  readonly source: string;
  readonly ranks: string;
  readonly count: number;
}

function warnings(problems: readonly Problem[]): Warning[] {
  const same = new Map<string, Problem[]>();
  for (const problem of problems) {
    const key = `${problem.source} ${problem.what}`;
    same.set(key, [...(same.get(key) ?? []), problem]);
  }
  return [...same.values()].map((all) => ({
    what: all[0]!.what,
    source: all[0]!.source,
    ranks: [...new Set(all.flatMap((one) => one.rank ?? []))]
      .sort((one, other) => one - other)
      .join(', '),
    count: all.reduce((sum, one) => sum + one.count, 0),
  }));
}

function Problems({ problems }: { problems: readonly Problem[] }) {
  const rows = warnings(problems);
  const columns: PlainColumn<Warning>[] = [
    {
      name: 'what',
      title: t('overview.problem.what'),
      value: (problem) => problem.what,
      isWide: true,
    },
    { name: 'source', title: t('overview.problem.source'), value: (problem) => problem.source },
    { name: 'rank', title: t('overview.problem.rank'), value: (problem) => problem.ranks },
    {
      name: 'count',
      title: t('overview.problem.count'),
      isNumber: true,
      value: (problem) => problem.count,
    },
  ];
  return (
    <Section title={t('overview.problems')} id="problems">
      <PlainTable
        name="problems"
        caption={t('overview.problems')}
        columns={columns}
        rows={rows}
        keyOf={(problem) => `${problem.source} ${problem.what}`}
      />
    </Section>
  );
}
