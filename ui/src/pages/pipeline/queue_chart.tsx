/** The length of queues over the steps. */

import { useMemo } from 'preact/hooks';
import { records, type Parameters } from '../../api';
import { useTable } from '../../tables';
import { Lines, type Series } from '../../components/lines';
import { Loaded, Missing } from '../../components/loaded';
import { t } from '../../i18n';
import { setQuery } from '../../router';
import * as units from '../../units';

interface Look {
  readonly name: string;
  readonly step: number | null;
  readonly ts_ns: number;
  readonly mean_length: number;
  readonly min_length: number;
  readonly capacity: number | null;
}

interface Props {
  readonly run: string;
  readonly parameters: Parameters;
  /** The first of them is the one in question; none: all there are. */
  readonly queues?: readonly string[];
}

const MOST_ROWS = 20_000;
/** More curves than this cannot be told apart; the ones read first are kept. */
const MOST_QUEUES = 6;

export function QueueChart({ run, parameters, queues }: Props) {
  const table = useTable(run, 'queue-history', { ...parameters, limit: MOST_ROWS });
  return (
    <Loaded of={table}>
      {(answer) =>
        answer.total === 0 ? (
          <Missing why={t('pipeline.noQueues')} />
        ) : (
          <Drawn looks={records<Look>(answer)} queues={queues ?? null} />
        )
      }
    </Loaded>
  );
}

function Drawn({ looks, queues }: { looks: readonly Look[]; queues: readonly string[] | null }) {
  const hasSteps = looks.some((look) => look.step !== null);
  const { x, series } = useMemo(
    () => columns(looks, queues, hasSteps),
    [looks, queues?.join('|'), hasSteps],
  );
  return (
    <Lines
      label={t('pipeline.queuesChart')}
      x={x}
      series={series}
      formatX={(value) => (hasSteps ? String(value) : units.duration(value))}
      formatY={(value) => units.count(Math.round(value * 100) / 100)}
      labelX={t(hasSteps ? 'table.step' : 'table.time')}
      isWholeX={hasSteps}
      isWholeY
      together="pipeline"
      {...(hasSteps
        ? {
            onRange: (first: number, last: number) =>
              setQuery(
                { steps: `${Math.max(1, Math.round(first))}:${Math.round(last)}` },
                { push: true },
              ),
          }
        : {})}
    />
  );
}

function columns(
  looks: readonly Look[],
  wanted: readonly string[] | null,
  hasSteps: boolean,
): { x: number[]; series: Series[] } {
  const names = (wanted ?? grouped(looks)).slice(0, MOST_QUEUES);
  const place = (look: Look) => (hasSteps ? look.step : look.ts_ns);
  const x = [...new Set(looks.flatMap((look) => place(look) ?? []))].sort((a, b) => a - b);
  const at = new Map(x.map((value, index) => [value, index]));
  const series: Series[] = names.map((name, number) => {
    const values = new Array<number | null>(x.length).fill(null);
    const ofWorkers = /^(loader \d+) orders$/.exec(name);
    for (const look of looks) {
      const isMine = ofWorkers
        ? look.name.startsWith(`${ofWorkers[1]} worker `) && look.name.endsWith(' orders')
        : look.name === name;
      const index = isMine ? at.get(place(look) ?? -1) : undefined;
      if (index !== undefined) values[index] = (values[index] ?? 0) + look.mean_length;
    }
    return {
      label: name,
      values,
      color: `--kind-${number + 1}`,
      form: number === 0 ? 'steps' : 'line',
    };
  });
  const capacity = looks.find((look) => look.name === names[0])?.capacity ?? null;
  if (capacity !== null && names.length > 0) {
    series.push({
      label: t('pipeline.capacity'),
      values: x.map(() => capacity),
      color: '--text-faint',
      isDashed: true,
    });
  }
  return { x, series };
}

/** The queues there are, those of a loader's workers as one. */
function grouped(looks: readonly Look[]): string[] {
  const names = looks.map((look) =>
    look.name.replace(/^(loader \d+) worker \d+ orders$/, '$1 orders'),
  );
  return [...new Set(names)].sort(
    (a, b) => Number(a.endsWith('orders')) - Number(b.endsWith('orders')) || a.localeCompare(b),
  );
}
