/** The gap before each step: how long training waited for data, how full the queues were, and which stage was behind. */

import { useMemo } from 'preact/hooks';
import { records, type Parameters } from '../../api';
import { useTable } from '../../tables';
import { PartsOfWhole } from '../../components/donut';
import { stageName } from '../../components/graph';
import { Lines } from '../../components/lines';
import { Loaded, Missing } from '../../components/loaded';
import { onTimeline } from '../../components/places';
import { Section } from '../../components/section';
import { TableView } from '../../components/table';
import { t } from '../../i18n';
import { go, setQuery } from '../../router';
import * as units from '../../units';
import { QueueChart } from './queue_chart';

interface StepRow {
  readonly step: number;
  readonly last_step: number;
  readonly ts_ns: number;
  readonly dur_ns: number;
  readonly gap_ns: number;
  readonly data_ns: number;
}

interface Shortage {
  readonly loader: number | null;
  readonly stage: string | null;
  readonly steps: number;
  readonly steps_share: number;
  readonly wait_ns: number;
  readonly time_share: number;
  readonly empty_steps: number | null;
  readonly worst_step: number;
  readonly worst_wait_ns: number;
}

const MOST_STEPS = 10_000;

export function StepGapTab({ run, parameters }: { run: string; parameters: Parameters }) {
  const history = useTable(run, 'step-history', { ...parameters, limit: MOST_STEPS });
  return (
    <Loaded of={history}>
      {(answer) =>
        answer.total === 0 ? (
          <Missing why={t('pipeline.noSteps')} command="strobe run train.py" />
        ) : (
          <div class="stack">
            <Shortages run={run} parameters={parameters} />
            <Section title={t('pipeline.waits')} about={t('pipeline.waitsAbout')}>
              <Waits steps={records<StepRow>(answer)} />
            </Section>
            <Section title={t('pipeline.queues')} about={t('pipeline.queuesAbout')}>
              <QueueChart run={run} parameters={parameters} />
            </Section>
            <Section title={t('pipeline.starvedSteps')} about={t('pipeline.starvedAbout')}>
              <TableView
                run={run}
                name="data-steps"
                id="starved"
                label={t('pipeline.starvedSteps')}
                parameters={parameters}
                columns={[
                  'step',
                  'dur_ns',
                  'wait_ns',
                  'share',
                  'loader',
                  'ready',
                  'orders',
                  'worker',
                  'stage',
                  'stage_ns',
                  'is_start',
                ]}
                hasSearch={false}
                onRow={(row) => {
                  const step = records<StepRow>(answer).find(
                    (one) => one.step <= Number(row.step) && Number(row.step) <= one.last_step,
                  );
                  if (step !== undefined)
                    go(onTimeline(run, { ts_ns: step.ts_ns, dur_ns: step.dur_ns }));
                }}
                cell={(column, row) =>
                  column === 'stage' && typeof row.stage === 'string'
                    ? stageName(row.stage)
                    : undefined
                }
                empty={<p class="dim">{t('pipeline.noneStarved')}</p>}
              />
            </Section>
          </div>
        )
      }
    </Loaded>
  );
}

function Shortages({ run, parameters }: { run: string; parameters: Parameters }) {
  const table = useTable(run, 'data-shortages', { ...parameters, limit: 100 });
  return (
    <Section title={t('pipeline.shortages')}>
      <Loaded of={table}>{(answer) => <ByStage rows={records<Shortage>(answer)} />}</Loaded>
    </Section>
  );
}

function ByStage({ rows }: { rows: readonly Shortage[] }) {
  const steps = rows.reduce((sum, row) => sum + row.steps, 0);
  const share = rows.reduce((sum, row) => sum + row.steps_share, 0);
  const time = rows.reduce((sum, row) => sum + row.time_share, 0);
  const empty = rows.reduce((sum, row) => sum + (row.empty_steps ?? 0), 0);
  if (rows.length === 0)
    return (
      <p class="verdict-line is-well">
        <strong>{t('pipeline.noneStarved')}</strong>
      </p>
    );
  return (
    <>
      <dl class="key-figures">
        <div>
          <dt>{t('pipeline.starvedCount')}</dt>
          <dd>
            {units.count(steps)} ({units.percent(share)})
          </dd>
        </div>
        <div>
          <dt>{t('pipeline.waitingShare')}</dt>
          <dd>{units.percent(time)}</dd>
        </div>
        {rows.some((row) => row.empty_steps !== null) && (
          <div>
            <dt>{t('pipeline.foundNothing')}</dt>
            <dd>{units.count(empty)}</dd>
          </div>
        )}
      </dl>
      <PartsOfWhole
        label={t('pipeline.byStage')}
        form="bars"
        total={steps}
        parts={rows.map((row) => ({
          key: `${row.loader} ${row.stage}`,
          label: `${row.stage === null ? t('pipeline.stageUnknown') : stageName(row.stage)}${row.loader === null ? '' : ` · ${t('pipeline.loader', { loader: row.loader })}`}`,
          value: row.steps,
          text: t('pipeline.stepCount', { count: units.count(row.steps) }),
        }))}
      />
    </>
  );
}

function Waits({ steps }: { steps: readonly StepRow[] }) {
  const x = useMemo(() => steps.map((row) => row.step), [steps]);
  return (
    <Lines
      label={t('pipeline.waits')}
      x={x}
      series={[
        {
          label: t('pipeline.stepLength'),
          values: steps.map((row) => row.dur_ns),
          color: '--part-rest',
        },
        {
          label: t('pipeline.gap'),
          values: steps.map((row) => row.gap_ns),
          color: '--part-gap',
          form: 'area',
        },
        {
          label: t('pipeline.dataWait'),
          values: steps.map((row) => row.data_ns),
          color: '--bad',
          form: 'area',
        },
      ]}
      formatX={String}
      formatY={(ns) => units.duration(ns)}
      labelX={t('table.step')}
      isWholeX
      together="pipeline"
      onRange={(first, last) =>
        setQuery({ steps: `${Math.max(1, Math.round(first))}:${Math.round(last)}` }, { push: true })
      }
    />
  );
}
