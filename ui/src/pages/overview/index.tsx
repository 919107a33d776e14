/** The verdict and the findings first, then where the time goes. */

import { useAnswer, ofRun } from '../../api';
import { Loaded, ProgressNote } from '../../components/loaded';
import { PlainTable, type PlainColumn } from '../../components/plain_table';
import { Section } from '../../components/section';
import { useGrowing } from '../../growing';
import { language, maybe, t } from '../../i18n';
import * as units from '../../units';
import type { Advice, Summary } from './answers';
import { Findings } from './findings';
import { Devices, Kernels, Machine, Modules, OperatorTypes, Pipeline, StepParts } from './pictures';
import { Preview } from './preview';
import './overview.css';

/** A run that goes on is judged anew this often: it takes more than drawing its curves. */
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
      {/* A run that cannot be read is told of once. */}
      {answer.state === 'failed' ? null : answer.state === 'loading' ? (advice.state === 'loading' ? null : <ProgressNote progress={answer.progress} />) : (
        <Pictures run={run} summary={answer.value.summary} />
      )}
    </div>
  );
}

function Pictures({ run, summary }: { run: string; summary: Summary }) {
  return (
    <div class="stack">
      <StepParts run={run} summary={summary} />
      <Preview run={run} />
      <div class="columns">
        <OperatorTypes run={run} summary={summary} />
        <Modules run={run} summary={summary} />
        <Kernels run={run} summary={summary} />
        <Devices summary={summary} />
        <Pipeline run={run} />
        <Machine summary={summary} />
      </div>
      <Problems problems={summary.problems} />
    </div>
  );
}

function Facts({ summary }: { summary: Summary }) {
  const { run, recorded } = summary;
  const facts: [string, string][] = [
    [t('overview.fact.command'), run.command.map(shortened).join(' ')],
    [t('overview.fact.recordedBy'), run.recorded_by],
    [t('overview.fact.frameworks'), Object.entries(run.frameworks).map(([name, version]) => `${name} ${version}`.trim()).join(', ')],
    [t('overview.fact.hosts'), run.hosts.join(', ')],
    [t('overview.fact.ranks'), run.ranks.length > 1 ? units.count(run.ranks.length) : ''],
    [t('overview.fact.steps'), recorded.steps === 0 ? '0' : t('overview.fact.full', { full: units.count(recorded.steps_in_full), all: units.count(recorded.steps) })],
    [t('overview.fact.events'), units.count(recorded.events)],
    [t('overview.fact.length'), run.dur_ns === null ? '' : units.duration(run.dur_ns)],
    [t('overview.fact.state'), language.value === 'en' ? run.state_means : maybe(`runs.state.${run.state}`) ?? run.state_means],
  ];
  return (
    <dl class="run-facts">
      {facts.filter(([, value]) => value !== '').map(([title, value]) => <div key={title}><dt>{title}</dt><dd title={value}>{value}</dd></div>)}
    </dl>
  );
}

/** A path by its last part. */
function shortened(word: string): string {
  return word.startsWith('/') ? word.split('/').at(-1)! : word;
}

type Problem = Summary['problems'][number];

function Problems({ problems }: { problems: readonly Problem[] }) {
  const columns: PlainColumn<Problem>[] = [
    { name: 'what', title: t('overview.problem.what'), value: (problem) => problem.what, isWide: true },
    { name: 'source', title: t('overview.problem.source'), value: (problem) => problem.source },
    { name: 'rank', title: t('overview.problem.rank'), isNumber: true, value: (problem) => problem.rank },
    { name: 'count', title: t('overview.problem.count'), isNumber: true, value: (problem) => problem.count },
  ];
  return (
    <Section title={t('overview.problems')} id="problems">
      {problems.length === 0 ? <p class="dim">{t('overview.problemsNone')}</p> : <PlainTable name="problems" caption={t('overview.problems')} columns={columns} rows={problems} keyOf={(problem) => `${problem.rank} ${problem.source} ${problem.what}`} />}
    </Section>
  );
}
