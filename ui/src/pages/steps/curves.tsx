/** Each part over all steps, with the outliers marked; a drag chooses a range, a click a step. */

import { useMemo } from 'preact/hooks';
import { Lines, type Series } from '../../components/lines';
import { Section } from '../../components/section';
import { PARTS, partTitle } from '../../components/step_bar';
import { language, t } from '../../i18n';
import { route, setQuery } from '../../router';
import * as units from '../../units';
import { chosenRange, chooseStep, setRange } from './choice';

/** A row of step-history: one step, or several that follow each other. */
export interface StepsRow {
  readonly rank: number;
  readonly step: number;
  readonly last_step: number;
  readonly ts_ns: number;
  readonly dur_ns: number;
  readonly longest_ns: number;
  readonly longest_step: number;
  readonly outliers: number;
  readonly [part: `${string}_ns`]: number;
}

/** Outliers named one by one; the table below has them all. */
const MOST_NAMED = 12;

const SCALES = ['typical', 'full', 'log'] as const;
type Scale = (typeof SCALES)[number];

/** The axis ends here where the longest steps would press all others to the ground: a little above 95 of 100 steps. */
const ROOM_ABOVE = 1.5;
/** Longest steps at most this many times that long are simply shown. */
const STILL_SHOWN = 2.5;

function ceilingOf(rows: readonly StepsRow[]): number | null {
  const lengths = rows.map((row) => row.longest_ns).sort((one, other) => one - other);
  const usual = lengths[Math.floor((lengths.length - 1) * 0.95)] ?? 0;
  return lengths.length >= 8 && lengths.at(-1)! > usual * STILL_SHOWN ? usual * ROOM_ABOVE : null;
}

export function Curves({ rows, isLive }: { rows: readonly StepsRow[]; isLive: boolean }) {
  const range = chosenRange();
  const x = useMemo(() => rows.map((row) => row.step), [rows]);
  const series = useMemo(() => seriesOf(rows), [rows, language.value]);
  const merged = Math.max(...rows.map((row) => row.last_step - row.step + 1));
  const ceiling = useMemo(() => ceilingOf(rows), [rows]);
  const scales = SCALES.filter((one) => one !== 'typical' || ceiling !== null);
  const scale = scales.find((one) => one === route.value.query.scale) ?? scales[0]!;
  const step = Number(route.value.query.step ?? 0);
  const whole = { first: rows[0]!.step, last: rows.at(-1)!.last_step };
  const choose = (first: number, last: number) => {
    const next = {
      first: Math.max(whole.first, Math.round(first)),
      last: Math.min(whole.last, Math.round(last)),
    };
    if (next.last > next.first) setRange(next);
  };
  return (
    <Section
      title={t('steps.curves')}
      about={merged > 1 ? t('steps.curvesMerged', { n: merged }) : t('steps.rangeHow')}
      tools={<ScaleChoice scales={scales} scale={scale} />}
    >
      <div>
        {isLive && (
          <p class="dim small" role="status">
            {t('steps.live')}
          </p>
        )}
        <Lines
          label={t('steps.curves')}
          x={x}
          series={series}
          height={260}
          labelX={t('table.step')}
          formatX={(step) => (Number.isInteger(step) ? units.count(step) : '')}
          formatY={units.duration}
          marked={range === null ? [] : [[range.first, range.last]]}
          onRange={choose}
          onPick={(at) => chooseStep(rows[at]!.longest_step)}
          ceiling={scale === 'typical' ? ceiling : null}
          isLog={scale === 'log'}
          selected={step > 0 ? { x: step, label: t('steps.one', { step }) } : null}
        />
        <Outliers rows={rows} />
      </div>
    </Section>
  );
}

function ScaleChoice({ scales, scale }: { scales: readonly Scale[]; scale: Scale }) {
  return (
    <div class="tabs" role="group" aria-label={t('steps.scale')}>
      {scales.map((one) => (
        <button
          key={one}
          type="button"
          title={t(`steps.scaleDoc.${one}`)}
          aria-pressed={one === scale}
          onClick={() => setQuery({ scale: one === scales[0] ? null : one })}
        >
          {t(`steps.scale.${one}`)}
        </button>
      ))}
    </div>
  );
}

function seriesOf(rows: readonly StepsRow[]): Series[] {
  const parts = PARTS.filter((part) => rows.some((row) => row[`${part}_ns`]! > 0));
  return [
    {
      label: t('steps.curveStep'),
      values: rows.map((row) => row.dur_ns),
      color: '--text-dim',
      form: 'line',
    },
    ...parts.map((part): Series => ({
      label: partTitle(part),
      values: rows.map((row) => row[`${part}_ns`]!),
      color: `--part-${part}`,
      form: 'line',
    })),
    {
      label: t('steps.curveOutlier'),
      values: rows.map((row) => (row.outliers > 0 ? row.longest_ns : null)),
      color: '--bad',
      form: 'points',
      size: 7,
    },
  ];
}

function Outliers({ rows }: { rows: readonly StepsRow[] }) {
  const found = rows
    .filter((row) => row.outliers > 0)
    .sort((one, other) => other.longest_ns - one.longest_ns);
  const count = found.reduce((sum, row) => sum + row.outliers, 0);
  if (count === 0) return <p class="dim">{t('steps.outliersNone')}</p>;
  const named = found.slice(0, MOST_NAMED);
  return (
    <p class="outliers">
      <span class="dim">{t('steps.outliers')}</span>
      {named.map((row) => (
        <button
          key={row.longest_step}
          type="button"
          class="chip"
          onClick={() => chooseStep(row.longest_step)}
        >
          {t('steps.one', { step: row.longest_step })}{' '}
          <span class="dim">{units.duration(row.longest_ns)}</span>
        </button>
      ))}
      {count > named.length && (
        <span class="dim">{t('steps.outliersMore', { n: count - named.length })}</span>
      )}
    </p>
  );
}
