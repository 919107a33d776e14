/** A run as the list of runs knows it. */

export interface ListedRun {
  readonly id: string;
  readonly name: string;
  /** ISO time; null where it is not known. */
  readonly started_at: string | null;
  readonly state: string;
  readonly size_bytes: number | null;
  readonly ranks: number | null;
  /** Versions by name. */
  readonly frameworks: Readonly<Record<string, string>>;
  readonly steps: number | null;
  readonly step_ns: number | null;
  readonly finding: null | {
    readonly rule: string;
    readonly title: string;
    readonly share: number;
    readonly expected_speedup: number;
  };
  readonly tags: readonly string[];
  readonly problem: string | null;
  readonly digest: 'ready' | 'working' | 'missing';
}

export interface RunsAnswer {
  readonly base_dir: string;
  readonly runs: readonly ListedRun[];
}

/** Whether something about the run may change by itself. */
export function isChanging(run: ListedRun): boolean {
  return run.state === 'live' || run.digest === 'working';
}

export function startedMs(run: ListedRun): number | null {
  return run.started_at === null ? null : Date.parse(run.started_at);
}

export function frameworks(run: ListedRun): string {
  return Object.entries(run.frameworks)
    .map(([name, version]) => `${name} ${version}`.trim())
    .join(', ');
}

/** Whether all words of a search stand in what is shown of the run. */
export function matches(run: ListedRun, search: string): boolean {
  const text = [
    run.id,
    run.name,
    run.state,
    frameworks(run),
    run.finding?.title,
    run.finding?.rule,
    run.problem,
    ...run.tags,
  ]
    .join(' ')
    .toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
