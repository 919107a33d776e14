/** The calls of one operator or kernel over time, each of them a way to its place on the timeline. */

import { useEffect } from 'preact/hooks';
import { records, type Parameters } from '../../api';
import { useTable } from '../../tables';
import { Lines } from '../../components/lines';
import { Loaded } from '../../components/loaded';
import { onTimeline } from '../../components/places';
import { Section } from '../../components/section';
import { t } from '../../i18n';
import { go, setQuery } from '../../router';
import * as units from '../../units';

interface Stretch {
  readonly ts_ns: number;
  readonly dur_ns: number;
  readonly step: number | null;
  readonly scope: string | null;
  readonly calls: number;
  readonly total_ns: number;
  readonly min_ns: number;
  readonly event_id: number;
}

interface Props {
  readonly run: string;
  readonly name: string;
  readonly scope: string | null;
  readonly parameters: Parameters;
}

/** The server makes at most this many stretches of each device. */
const MOST_ROWS = 10_000;

export function CallHistory({ run, name, scope, parameters }: Props) {
  const table = useTable(run, 'call-history', { ...parameters, name, scope, limit: MOST_ROWS });
  // Below long tables it would open out of sight.
  useEffect(() => {
    if (table.state === 'ready')
      document.getElementById('calls')?.scrollIntoView({ block: 'nearest' });
  }, [name, scope, table.state]);
  return (
    <Section
      id="calls"
      title={t('operators.callsOf', { name })}
      about={scope === null ? t('operators.inWholeModel') : t('operators.inModule', { scope })}
      tools={
        <>
          {scope !== null && (
            <button
              type="button"
              class="quiet"
              onClick={() => setQuery({ opScope: null }, { push: true })}
            >
              {t('operators.everywhere')}
            </button>
          )}
          <button
            type="button"
            class="quiet"
            onClick={() => setQuery({ op: null, opScope: null }, { push: true })}
          >
            {t('shell.close')}
          </button>
        </>
      }
    >
      <Loaded of={table}>
        {(answer) => <Calls run={run} stretches={records<Stretch>(answer)} />}
      </Loaded>
    </Section>
  );
}

function Calls({ run, stretches }: { run: string; stretches: readonly Stretch[] }) {
  if (stretches.length === 0) return <p class="dim">{t('operators.noCalls')}</p>;
  const calls = stretches.reduce((sum, one) => sum + one.calls, 0);
  const total = stretches.reduce((sum, one) => sum + one.total_ns, 0);
  const longest = stretches.reduce((most, one) => (one.dur_ns > most.dur_ns ? one : most));
  const shortest = stretches.reduce((least, one) => Math.min(least, one.min_ns), Infinity);
  const isThinned = calls > stretches.length;
  return (
    <>
      <dl class="key-figures">
        <Fact term={t('operators.callCount')}>{units.count(calls)}</Fact>
        <Fact term={t('operators.total')}>{units.duration(total)}</Fact>
        <Fact term={t('operators.mean')}>{units.duration(total / calls)}</Fact>
        <Fact term={t('operators.shortest')}>{units.duration(shortest)}</Fact>
        <Fact term={t('operators.longest')}>
          {units.duration(longest.dur_ns)}{' '}
          <a
            href={onTimeline(run, {
              event: longest.event_id,
              ts_ns: longest.ts_ns,
              dur_ns: longest.dur_ns,
            })}
          >
            {t('operators.onTimeline')}
          </a>
        </Fact>
        {longest.step !== null && (
          <Fact term={t('operators.longestIn')}>{t('operators.step', { step: longest.step })}</Fact>
        )}
      </dl>
      <Lines
        label={t('operators.callsChart')}
        x={stretches.map((one) => one.ts_ns)}
        series={[
          {
            label: isThinned ? t('operators.longestOfStretch') : t('operators.length'),
            values: stretches.map((one) => one.dur_ns),
            color: '--kind-1',
            form: 'points',
          },
          ...(isThinned
            ? [
                {
                  label: t('operators.meanOfStretch'),
                  values: stretches.map((one) => one.total_ns / one.calls),
                  color: '--kind-2' as const,
                },
              ]
            : []),
        ]}
        formatX={(ns) => units.duration(ns)}
        formatY={(ns) => units.duration(ns)}
        labelX={t('table.time')}
        height={180}
        onPick={(at) => {
          const one = stretches[at];
          if (one !== undefined)
            go(onTimeline(run, { event: one.event_id, ts_ns: one.ts_ns, dur_ns: one.dur_ns }));
        }}
      />
      <p class="dim small">{t('operators.clickACall')}</p>
    </>
  );
}

function Fact({ term, children }: { term: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </div>
  );
}
