/** The stages as a graph with the queues between them; a queue that is clicked is shown over time, with its neighbours. */

import { records, type Parameters } from '../../api';
import { useTable } from '../../tables';
import { PipelineGraph, stageName } from '../../components/graph';
import { Loaded, Missing } from '../../components/loaded';
import { Section } from '../../components/section';
import { sentence, unstopped } from '../../components/words';
import { TableView } from '../../components/table';
import { t } from '../../i18n';
import { route, setQuery } from '../../router';
import * as units from '../../units';
import { QueueChart } from './queue_chart';
import { pipelines, processes, type Stage } from './stages';

export function PipelineTab({ run, parameters }: { run: string; parameters: Parameters }) {
  const table = useTable(run, 'data-pipeline', { ...parameters, limit: 1000 });
  return (
    <Loaded of={table}>
      {(answer) =>
        answer.total === 0 ? (
          <Missing why={t('pipeline.none')} command="strobe run train.py" />
        ) : (
          <div class="stack">
            {pipelines(records<Stage>(answer)).map((pipeline) => (
              <OnePipeline
                key={pipeline[0]?.loader}
                run={run}
                parameters={parameters}
                pipeline={pipeline}
              />
            ))}
            <Section title={t('pipeline.stagesTable')} about={t('pipeline.stagesAbout')}>
              <TableView
                run={run}
                name="data-pipeline"
                id="stages"
                label={t('pipeline.stagesTable')}
                parameters={parameters}
                columns={[
                  'loader',
                  'stage',
                  'feeds',
                  'workers',
                  'mean_ns',
                  'share',
                  'busy_ratio',
                  'queue',
                  'queue_mean',
                  'capacity',
                  'empty_ratio',
                  'full_ratio',
                  'is_at_fault',
                ]}
                cell={(column, row) =>
                  (column === 'stage' || column === 'feeds') && row[column] !== null
                    ? stageName(String(row[column]))
                    : undefined
                }
                hasSearch={false}
              />
            </Section>
          </div>
        )
      }
    </Loaded>
  );
}

function OnePipeline({
  run,
  parameters,
  pipeline,
}: {
  run: string;
  parameters: Parameters;
  pipeline: readonly Stage[];
}) {
  const first = pipeline[0];
  const fault = pipeline.find((stage) => stage.is_at_fault);
  const reason = fault?.reason ?? pipeline.find((stage) => stage.reason !== null)?.reason ?? null;
  const title =
    first?.loader == null ? t('pipeline.pipeline') : t('pipeline.loader', { loader: first.loader });
  const asked = route.value.query.queue ?? null;
  const selected = pipeline.find((stage) => stage.queue !== null && stage.queue === asked) ?? null;
  return (
    <Section
      title={title}
      about={
        first?.batches == null
          ? undefined
          : t('pipeline.batches', { count: units.count(first.batches) })
      }
    >
      <p class={fault ? 'verdict-line' : 'verdict-line is-well'}>
        <strong>
          {fault ? t('pipeline.faultIs', { stage: stageName(fault.stage) }) : t('pipeline.noFault')}
        </strong>
        {reason !== null && ` ${t('pipeline.because', { reason: unstopped(sentence(reason)) })}`}
      </p>
      <PipelineGraph
        label={title}
        processes={processes(pipeline)}
        selected={selected?.queue ?? null}
        onQueue={(queue) => setQuery({ queue: queue === asked ? null : queue }, { push: true })}
      />
      {selected === null ? (
        pipeline.some((stage) => stage.queue !== null) && (
          <p class="dim small">{t('pipeline.clickQueue')}</p>
        )
      ) : (
        <SelectedQueue run={run} parameters={parameters} pipeline={pipeline} selected={selected} />
      )}
    </Section>
  );
}

function SelectedQueue({
  run,
  parameters,
  pipeline,
  selected,
}: {
  run: string;
  parameters: Parameters;
  pipeline: readonly Stage[];
  selected: Stage;
}) {
  const at = pipeline.indexOf(selected);
  const queues = pipeline.filter((stage) => stage.queue !== null);
  const place = queues.indexOf(selected);
  const neighbours = [queues[place - 1], queues[place + 1]].flatMap((stage) =>
    stage?.queue ? [stage.queue] : [],
  );
  const after = pipeline[at + 1];
  return (
    <>
      <dl class="key-figures">
        <div>
          <dt>{t('pipeline.filledBy')}</dt>
          <dd>{stageName(selected.stage)}</dd>
        </div>
        {after !== undefined && (
          <div>
            <dt>{t('pipeline.emptiedBy')}</dt>
            <dd>{stageName(after.stage)}</dd>
          </div>
        )}
        <div>
          <dt>{t('pipeline.length')}</dt>
          <dd>
            {units.count(selected.queue_mean)}
            {selected.capacity !== null && ` / ${units.count(selected.capacity)}`}
          </dd>
        </div>
        <div>
          <dt>{t('pipeline.empty')}</dt>
          <dd>{units.percent(selected.empty_ratio)}</dd>
        </div>
        <div>
          <dt>{t('pipeline.full')}</dt>
          <dd>{units.percent(selected.full_ratio)}</dd>
        </div>
      </dl>
      <QueueChart
        run={run}
        parameters={parameters}
        queues={[selected.queue ?? '', ...neighbours]}
      />
    </>
  );
}
