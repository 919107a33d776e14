/** How long steps take, of what they are made, and which are out of line. */

import { useMemo } from 'preact/hooks';
import { ofRun, records, useAnswer, type Parameters, type TableAnswer } from '../../api';
import { useTable } from '../../tables';
import { RankChoice } from '../../components/chosen';
import { Loaded, Missing } from '../../components/loaded';
import { Section } from '../../components/section';
import { TableView } from '../../components/table';
import { t } from '../../i18n';
import { useGrowing, type Growing } from '../../growing';
import { useShortcuts, type Shortcut } from '../../keys';
import { route, setQuery } from '../../router';
import { AverageStep } from './average';
import { chooseStep, chosenRange, RangeChoice, setRange } from './choice';
import { Curves, type StepsRow } from './curves';
import { Edges } from './edges';
import { OneStep } from './one';
import './steps.css';

const COLUMNS = [
  'step',
  'dur_ns',
  'gap_ns',
  'data_ns',
  'forward_ns',
  'backward_ns',
  'all_reduce_ns',
  'update_ns',
  'rest_ns',
  'ts_ns',
  'is_outlier',
  'is_recorded',
];

/** More than are drawn of one rank. */
const MOST_ROWS = 4000;

export default function Steps({ run }: { run: string }) {
  const about = useAnswer<{ ranks: readonly number[] }>(ofRun(run));
  return (
    <div class="page steps">
      <h1>{t('steps.title')}</h1>
      <Loaded of={about}>{({ ranks }) => <OfRank run={run} ranks={ranks} />}</Loaded>
    </div>
  );
}

function OfRank({ run, ranks }: { run: string; ranks: readonly number[] }) {
  const asked = Number(route.value.query.rank);
  const rank = ranks.includes(asked) ? asked : (ranks[0] ?? 0);
  const growing = useGrowing(run);
  const history = useTable(run, 'step-history', { where: `rank:eq:${rank}`, limit: MOST_ROWS });
  useShortcuts(
    'steps.keys',
    useMemo(() => keys(), []),
  );
  return (
    <Loaded of={history}>
      {(answer) => <Whole run={run} answer={answer} rank={rank} ranks={ranks} growing={growing} />}
    </Loaded>
  );
}

interface Props {
  readonly run: string;
  readonly answer: TableAnswer;
  readonly rank: number;
  readonly ranks: readonly number[];
  readonly growing: Growing;
}

function Whole({ run, answer, rank, ranks, growing }: Props) {
  const rows = useMemo(() => records<StepsRow>(answer), [answer]);
  if (rows.length === 0) {
    return (
      <>
        <RankChoice ranks={ranks} />
        <Missing why={`${t('steps.none')} ${t('steps.noneHow')}`} command="strobe run train.py" />
      </>
    );
  }
  const whole = { first: rows[0]!.step, last: rows.at(-1)!.last_step };
  const range = chosenRange();
  // A run of one rank need not be narrowed to it.
  const parameters: Parameters = {
    rank: ranks.length > 1 ? rank : null,
    steps: range === null ? null : `${range.first}:${range.last}`,
  };
  const step = Number(route.value.query.step ?? 0);
  return (
    <div class="stack">
      <div class="toolbar">
        <RankChoice ranks={ranks} />
        <RangeChoice whole={whole} />
      </div>
      <AverageStep run={run} parameters={parameters} />
      <Curves rows={rows} isLive={growing.isLive} />
      {step > 0 && <OneStep run={run} step={step} rank={rank} parameters={parameters} />}
      <Edges run={run} parameters={parameters} />
      <Section title={t('steps.table')}>
        <TableView
          run={run}
          name="steps"
          id="table"
          label={t('steps.table')}
          columns={COLUMNS}
          parameters={parameters}
          order="step"
          onRow={(row) => chooseStep(Number(row.step))}
          isSelected={(row) => row.step === step}
          hasSearch={false}
        />
      </Section>
    </div>
  );
}

function keys(): Shortcut[] {
  const move = (by: number) => () =>
    setQuery({ step: Math.max(1, Number(route.value.query.step ?? 0) + by) });
  return [
    { code: 'Comma', shown: ',', does: 'steps.keys.previous', run: move(-1) },
    { code: 'Period', shown: '.', does: 'steps.keys.next', run: move(1) },
    { code: 'Digit0', does: 'steps.keys.all', run: () => setRange(null) },
  ];
}
