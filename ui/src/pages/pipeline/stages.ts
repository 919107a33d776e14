/** The rows of the table `data-pipeline`, and what they say of a stage and its queue. */

export interface Stage {
  readonly rank: number;
  readonly loader: number | null;
  readonly position: number;
  readonly stage: string;
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
    if (together.length > 0) found.push({ stages: together, workers: together[0]?.workers ?? null, queue });
    together = [];
  };
  for (const stage of pipeline) {
    if (stage.stage === 'training') end(null);
    together.push(stage);
    if (stage.queue !== null) end(stage);
  }
  end(null);
  return found;
}
