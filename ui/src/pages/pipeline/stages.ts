/** The rows of the table `data-pipeline`, and what they say of a stage and its queue. */

export interface Stage {
  readonly rank: number;
  readonly loader: number | null;
  readonly position: number;
  readonly stage: string;
  /** The stage that takes what it makes. */
  readonly feeds: string | null;
  readonly workers: number | null;
  readonly batches: number | null;
  readonly mean_ns: number | null;
  readonly share: number | null;
  readonly busy_ratio: number | null;
  readonly queue: string | null;
  readonly queue_mean: number | null;
  readonly capacity: number | null;
  readonly use_ratio: number | null;
  readonly empty_ratio: number | null;
  readonly full_ratio: number | null;
  readonly is_at_fault: boolean;
  readonly reason: string | null;
}

/** Stages with no queue between them run one after the other in the same process. */
export interface Process {
  readonly stages: readonly Stage[];
  readonly workers: number | null;
  readonly queue: Stage | null;
}

/** The pipelines of a run: one for each rank and loader. */
export function pipelines(stages: readonly Stage[]): (readonly Stage[])[] {
  const found = new Map<string, Stage[]>();
  for (const stage of stages) {
    const key = `${stage.rank}/${stage.loader}`;
    const mine = found.get(key);
    if (mine === undefined) found.set(key, [stage]);
    else mine.push(stage);
  }
  return [...found.values()];
}

export function processes(pipeline: readonly Stage[]): Process[] {
  const found: Process[] = [];
  let together: Stage[] = [];
  const end = (queue: Stage | null) => {
    if (together.length > 0)
      found.push({ stages: together, workers: together[0]?.workers ?? null, queue });
    together = [];
  };
  for (const [at, stage] of pipeline.entries()) {
    if (stage.stage === 'training') end(null);
    together.push(stage);
    const next = pipeline[at + 1];
    if (stage.queue !== null) end(stage);
    else if (
      next !== undefined &&
      (next.workers !== stage.workers || next.stage !== (stage.feeds ?? next.stage))
    )
      end(null);
  }
  end(null);
  return found;
}

/** The processes whose output this one takes; more than one where branches meet. */
export function inputsOf(process: Process, all: readonly Process[]): readonly Process[] {
  const names = new Set(process.stages.map((stage) => stage.stage));
  return all.filter((other) => other !== process && names.has(other.stages.at(-1)?.feeds ?? ''));
}
