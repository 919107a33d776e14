/** A pipeline as a graph: processes with their stages, and the queues between them with how full they are. */

import { maybe, t } from '../i18n';
import * as units from '../units';
import { inputsOf, type Process, type Stage } from '../pages/pipeline/stages';
import './graph.css';

interface Props {
  readonly label: string;
  readonly processes: readonly Process[];
  readonly selected: string | null;
  readonly onQueue: (queue: string) => void;
}

/** A queue with less than this is drawn as starved, with more as waiting: the measure of data-pipeline. */
const LOW_RATIO = 0.2;
const HIGH_RATIO = 0.8;

export function PipelineGraph({ label, processes, selected, onQueue }: Props) {
  return (
    <div class="graph" role="group" aria-label={label}>
      {processes
        .filter((process) => process.stages.at(-1)?.feeds == null)
        .map((last) => (
          <Branch
            key={last.stages[0]?.position}
            process={last}
            all={processes}
            selected={selected}
            onQueue={onQueue}
          />
        ))}
    </div>
  );
}

interface BranchProps {
  readonly process: Process;
  readonly all: readonly Process[];
  readonly selected: string | null;
  readonly onQueue: (queue: string) => void;
}

/** All that leads to a process, one branch below the other where several meet, then the process and what it fills. */
function Branch({ process, all, selected, onQueue }: BranchProps) {
  const inputs = inputsOf(process, all);
  const branches = inputs.map((input) => (
    <Branch
      key={input.stages[0]?.position}
      process={input}
      all={all}
      selected={selected}
      onQueue={onQueue}
    />
  ));
  return (
    <>
      {inputs.length > 1 ? (
        <div class="graph-branches">
          {branches.map((branch, at) => (
            <div key={at} class="graph-branch">
              {branch}
            </div>
          ))}
        </div>
      ) : (
        branches
      )}
      <div class="graph-part">
        <ProcessBox process={process} />
        {process.queue !== null ? (
          <QueueBox
            stage={process.queue}
            isSelected={process.queue.queue === selected}
            onPick={onQueue}
          />
        ) : (
          process.stages.at(-1)?.feeds != null && (
            <span class="graph-arrow" aria-hidden="true">
              →
            </span>
          )
        )}
      </div>
    </>
  );
}

function ProcessBox({ process }: { process: Process }) {
  const longest = Math.max(...process.stages.map((stage) => stage.mean_ns ?? 0));
  return (
    <div
      class={
        process.stages.some((stage) => stage.is_at_fault)
          ? 'graph-process is-at-fault'
          : 'graph-process'
      }
    >
      {who(process) !== '' && <p class="graph-who">{who(process)}</p>}
      <div class="graph-stages">
        {process.stages.map((stage) => (
          <div
            key={stage.position}
            class={stage.is_at_fault ? 'graph-stage is-at-fault' : 'graph-stage'}
            title={told(stage)}
          >
            <strong>{stageName(stage.stage)}</strong>
            {stage.mean_ns !== null && (
              <>
                <span>{t('pipeline.aBatch', { time: units.duration(stage.mean_ns) })}</span>
                <span class="graph-bar">
                  <span
                    style={{ width: `${longest > 0 ? (stage.mean_ns / longest) * 100 : 0}%` }}
                  />
                </span>
              </>
            )}
            {stage.busy_ratio !== null && (
              <span class="dim">
                {t('pipeline.busy', { share: units.percent(stage.busy_ratio) })}
              </span>
            )}
            {stage.is_at_fault && <span class="graph-fault">{t('pipeline.atFault')}</span>}
          </div>
        ))}
      </div>
    </div>
  );
}

function QueueBox({
  stage,
  isSelected,
  onPick,
}: {
  stage: Stage;
  isSelected: boolean;
  onPick: (queue: string) => void;
}) {
  const use = stage.use_ratio;
  const state =
    use === null ? 'unknown' : use <= LOW_RATIO ? 'low' : use >= HIGH_RATIO ? 'high' : 'middle';
  const length = `${units.count(stage.queue_mean)}${stage.capacity === null ? '' : ` / ${units.count(stage.capacity)}`}`;
  return (
    <button
      type="button"
      class={`graph-queue is-${state}`}
      aria-pressed={isSelected}
      onClick={() => stage.queue !== null && onPick(stage.queue)}
      title={t('pipeline.clickQueue')}
    >
      <span class="graph-tube" aria-hidden="true">
        <span style={{ width: `${Math.min(1, use ?? 0) * 100}%` }} />
      </span>
      <span class="mono small">{stage.queue}</span>
      <span class="small">{t('pipeline.onAverage', { length })}</span>
      {stage.empty_ratio !== null && (
        <span class="small dim">
          {t('pipeline.foundEmpty', { share: units.percent(stage.empty_ratio) })}
        </span>
      )}
    </button>
  );
}

function who({ stages, workers }: Process): string {
  if (stages[0]?.stage === 'training' || stages[0]?.stage === 'sampling')
    return t('pipeline.trainingProcess');
  if (workers === null) return '';
  if (workers === 0) return t('pipeline.inTraining');
  return workers === 1 ? t('pipeline.oneWorker') : t('pipeline.workers', { count: workers });
}

export function stageName(stage: string): string {
  return maybe(`pipeline.stage.${stage.replace(' ', '_')}`) ?? stage;
}

function told(stage: Stage): string {
  return maybe(`pipeline.about.${stage.stage.replace(' ', '_')}`) ?? stage.stage;
}
