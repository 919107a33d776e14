/** The bytes in use over time, with the peak; dragging looks closer, and the blocks below follow. */

import { useMemo } from 'preact/hooks';
import { records, type Parameters } from '../../api';
import { useTable } from '../../tables';
import { Lines } from '../../components/lines';
import { onTimeline } from '../../components/places';
import { Section } from '../../components/section';
import { t } from '../../i18n';
import { route, setQuery } from '../../router';
import * as units from '../../units';
import { PROCESS } from './devices';

export interface CurvePoint {
  readonly device: string;
  readonly ts_ns: number;
  readonly live_bytes: number;
}

export interface Total {
  readonly device: string;
  /** Null where the memory is what the allocator counted, without its blocks. */
  readonly allocations: number | null;
  readonly allocated_bytes: number | null;
  readonly peak_bytes: number;
  readonly peak_ts_ns: number;
  readonly left_bytes: number | null;
}

/** The stretch of time that is looked at, from the address; null: all of it. */
export function lookedAt(): readonly [number, number] | null {
  const { m0, m1 } = route.value.query;
  const [first, last] = [Number(m0), Number(m1)];
  return m0 !== undefined && m1 !== undefined && last > first ? [first, last] : null;
}

export function lookAt(first: number | null, last: number | null): void {
  setQuery({
    m0: first === null ? null : Math.floor(first),
    m1: last === null ? null : Math.ceil(last),
  });
}

/** What is known of a device as a whole, once it is. */
export function useTotal(run: string, parameters: Parameters, device: string): Total | undefined {
  const totals = useTable(run, 'memory', parameters);
  return totals.state === 'ready'
    ? records<Total>(totals.value).find((row) => row.device === device)
    : undefined;
}

export function isCounted(total: Total | undefined): boolean {
  return total !== undefined && total.allocations === null;
}

export function Curve({
  run,
  device,
  points,
  total,
}: {
  run: string;
  device: string;
  points: readonly CurvePoint[];
  total: Total | undefined;
}) {
  const peak = points.reduce((most, one) => (one.live_bytes > most.live_bytes ? one : most));
  const range = lookedAt();
  const x = useMemo(() => points.map((point) => point.ts_ns), [points]);
  return (
    <Section
      title={t('memory.curve')}
      about={t(
        device === PROCESS
          ? 'memory.curveOfProcess'
          : isCounted(total)
            ? 'memory.curveOfCounter'
            : 'memory.curveOfBlocks',
      )}
      tools={
        range !== null && (
          <button type="button" onClick={() => lookAt(null, null)}>
            {t('memory.all')}
          </button>
        )
      }
    >
      <div class="stack">
        <dl class="key-figures">
          <div>
            <dt>{t('memory.peak')}</dt>
            <dd>
              {units.size(peak.live_bytes)}{' '}
              <a href={onTimeline(run, { ts_ns: peak.ts_ns, dur_ns: 1_000_000 })}>
                {t('memory.at', { moment: units.duration(peak.ts_ns) })}
              </a>
            </dd>
          </div>
          {total !== undefined && !isCounted(total) && (
            <>
              <div>
                <dt>{t('memory.allocations')}</dt>
                <dd>{units.count(total.allocations)}</dd>
              </div>
              <div>
                <dt>{t('memory.allocated')}</dt>
                <dd>{units.size(total.allocated_bytes)}</dd>
              </div>
              <div>
                <dt>{t('memory.left')}</dt>
                <dd>{units.size(total.left_bytes)}</dd>
              </div>
            </>
          )}
        </dl>
        <Lines
          label={t('memory.curve')}
          x={x}
          series={[
            {
              label: t('memory.inUse'),
              values: points.map((point) => point.live_bytes),
              color: '--kind-1',
              form: device === PROCESS ? 'area' : 'steps',
            },
            {
              label: t('memory.peak'),
              values: points.map((point) => (point === peak ? point.live_bytes : null)),
              color: '--bad',
              form: 'points',
              size: 9,
            },
          ]}
          formatX={(ns) => units.duration(ns)}
          formatY={(bytes) => units.size(bytes)}
          labelX={t('table.time')}
          isBytes
          range={range}
          onRange={lookAt}
          height={230}
        />
        <p class="dim small">
          {t(device === PROCESS || isCounted(total) ? 'memory.dragProcess' : 'memory.drag')}
        </p>
      </div>
    </Section>
  );
}
