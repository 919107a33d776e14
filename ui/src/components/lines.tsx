/** Curves over steps or time. Drawing only: what is drawn comes as columns of numbers. */

import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { theme, token } from '../theme';
import './lines.css';

export interface Series {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /** A variable of theme.css. */
  readonly color: `--${string}`;
  /** line: a curve; area: filled to zero; steps: a value that holds until the next; points: single things. */
  readonly form?: 'line' | 'area' | 'steps' | 'points';
  /** Dashed, for limits and means. */
  readonly isDashed?: boolean;
  readonly size?: number;
  /** The value axis it belongs to, where another is measured in something else. */
  readonly axis?: 'left' | 'right';
}

interface Props {
  /** The accessible name: what the curves show. */
  readonly label: string;
  readonly x: readonly number[];
  readonly series: readonly Series[];
  readonly formatX: (x: number) => string;
  readonly formatY: (y: number) => string;
  readonly formatRight?: (y: number) => string;
  /** What x is, before its value at the cursor: Step, Time. */
  readonly labelX?: string;
  /** Values are bytes: the axis has powers of two. */
  readonly isBytes?: boolean;
  /** There is nothing between whole numbers: steps, lengths of queues. */
  readonly isWholeX?: boolean;
  readonly isWholeY?: boolean;
  readonly height?: number;
  /** The part of x that is seen; all of it if null. */
  readonly range?: readonly [number, number] | null;
  /** Stretches of x that are tinted: what is chosen, what was recorded in full. */
  readonly marked?: readonly (readonly [number, number])[];
  /** Dragging chooses a range. */
  readonly onRange?: (first: number, last: number) => void;
  /** Clicking chooses the point at the cursor, by its place in `x`. */
  readonly onPick?: (at: number) => void;
  /** Charts with the same name move their cursors together. */
  readonly together?: string;
  /** The highest value that the left axis shows; what lies above is marked at the top edge with its value. */
  readonly ceiling?: number | null;
  /** The left axis in powers of ten. */
  readonly isLog?: boolean;
  /** A value of x that is marked with a line, and its name. */
  readonly selected?: { readonly x: number; readonly label: string } | null;
  /** Whether the value axis begins at zero. */
  readonly fromZero?: boolean;
}

const HEIGHT = 200;
/** A drag shorter than this is a click. */
const CLICK_PX = 4;
const POWERS_OF_TWO = Array.from({ length: 48 }, (_, power) => 2 ** power);
const WHOLE = Array.from({ length: 12 }, (_, power) =>
  [1, 2, 5].map((digit) => digit * 10 ** power),
).flat();

export function Lines(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const shape = JSON.stringify([
    props.series.map((one) => [one.label, one.color, one.form, one.axis, one.isDashed]),
    props.height,
    props.range,
    props.marked,
    props.ceiling,
    props.isLog,
    props.selected,
    theme.value,
  ]);

  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const made = new uPlot(options(latest, element.clientWidth), columns(latest.current), element);
    plot.current = made;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0)
        made.setSize({ width: element.clientWidth, height: latest.current.height ?? HEIGHT });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => {
    plot.current?.setData(columns(props), true);
  }, [props.x, ...props.series.map((one) => one.values)]);

  return (
    <div
      class={props.onPick ? 'lines is-clickable' : 'lines'}
      role="figure"
      aria-label={props.label}
    >
      <div ref={host} />
    </div>
  );
}

function columns({ x, series, isLog }: Props): uPlot.AlignedData {
  // Zero has no place on an axis of powers.
  const shown = (values: readonly (number | null)[]) =>
    isLog
      ? values.map((value) => (value !== null && value > 0 ? value : null))
      : (values as (number | null)[]);
  return [x as number[], ...series.map((one) => shown(one.values))];
}

function options(latest: { current: Props }, width: number): uPlot.Options {
  const {
    series,
    height,
    range,
    formatX,
    formatY,
    formatRight,
    together,
    fromZero,
    labelX,
    isBytes,
    isWholeX,
    isWholeY,
    ceiling,
    isLog,
  } = latest.current;
  const axis = {
    stroke: token('--text-dim'),
    grid: { stroke: token('--line'), width: 1 },
    ticks: { stroke: token('--line'), width: 1, size: 4 },
    font: `11px ${token('--font')}`,
  };
  const hasRight = series.some((one) => one.axis === 'right');
  return {
    width,
    height: height ?? HEIGHT,
    padding: [8, 12, 0, 0],
    legend: { live: true, markers: { width: 2 } },
    cursor: {
      drag: { x: latest.current.onRange !== undefined, y: false, setScale: false, dist: CLICK_PX },
      focus: { prox: 24 },
      ...(together === undefined ? {} : { sync: { key: together, setSeries: false } }),
    },
    scales: {
      x: { time: false, ...(range ? { range: [range[0], range[1]] as [number, number] } : {}) },
      left: isLog
        ? { distr: 3 }
        : {
            range: (_, low, high) =>
              ceiling == null ? padded(low, high, fromZero ?? true) : [0, ceiling],
          },
      right: { range: (_, low, high) => padded(low, high, true) },
    },
    axes: [
      {
        ...axis,
        scale: 'x',
        values: (_, ticks) => ticks.map(formatX),
        space: 80,
        size: 28,
        ...(isWholeX ? { incrs: WHOLE } : {}),
      },
      {
        ...axis,
        scale: 'left',
        values: (_, ticks) => ticks.map(ofAxis(formatY)),
        size: 70,
        space: 34,
        ...(isBytes ? { incrs: POWERS_OF_TWO } : isWholeY ? { incrs: WHOLE } : {}),
      },
      ...(hasRight
        ? [
            {
              ...axis,
              scale: 'right',
              side: 1 as const,
              grid: { show: false },
              values: (_: uPlot, ticks: number[]) => ticks.map(ofAxis(formatRight ?? formatY)),
              size: 70,
              space: 34,
            },
          ]
        : []),
    ],
    series: [
      { label: labelX ?? '·', value: (_, x) => (x === null ? '' : formatX(x)) },
      ...series.map((one) => drawn(one, formatY, formatRight ?? formatY)),
    ],
    hooks: {
      drawClear: [(plot) => tint(plot, latest.current.marked ?? [])],
      draw: [(plot) => drawMarks(plot, latest.current)],
      setSelect: [
        (plot) => {
          if (plot.select.width < CLICK_PX) return;
          const [first, last] = [
            plot.posToVal(plot.select.left, 'x'),
            plot.posToVal(plot.select.left + plot.select.width, 'x'),
          ];
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          latest.current.onRange?.(first, last);
        },
      ],
      ready: [
        (plot) => {
          plot.over.addEventListener('click', () => {
            const at = plot.cursor.idx;
            if (at !== null && at !== undefined) latest.current.onPick?.(at);
          });
        },
      ],
    },
  };
}

/** Zero is zero in every unit; uPlot leaves out ticks of a logarithmic axis as null. */
function ofAxis(format: (value: number) => string): (tick: number | null) => string {
  return (tick) => (tick === null ? '' : tick === 0 ? '0' : format(tick));
}

function drawn(
  one: Series,
  formatY: (y: number) => string,
  formatRight: (y: number) => string,
): uPlot.Series {
  const color = token(one.color);
  const form = one.form ?? 'line';
  const format = one.axis === 'right' ? formatRight : formatY;
  return {
    label: one.label,
    scale: one.axis ?? 'left',
    stroke: color,
    width: form === 'points' ? 0 : 1.5,
    spanGaps: false,
    ...(one.isDashed ? { dash: [5, 4] } : {}),
    ...(form === 'area' ? { fill: `color-mix(in srgb, ${color} 18%, transparent)` } : {}),
    ...(form === 'steps'
      ? {
          paths: uPlot.paths.stepped!({ align: 1 }),
          fill: `color-mix(in srgb, ${color} 14%, transparent)`,
        }
      : {}),
    ...(form === 'points'
      ? { paths: () => null, points: { show: true, size: one.size ?? 5, fill: color, width: 0 } }
      : { points: { show: one.values.length < 60, size: 4, fill: color } }),
    value: (_, y) => (y === null || y === undefined ? '–' : format(y)),
  };
}

/** A little room above the highest value; from zero where shares of a whole are compared by height. */
function padded(low: number | null, high: number | null, fromZero: boolean): [number, number] {
  if (low === null || high === null) return [0, 1];
  const bottom = fromZero ? Math.min(0, low) : low;
  const room = (high - bottom) * 0.06 || Math.abs(high) * 0.1 || 1;
  return [fromZero && bottom === 0 ? 0 : bottom - room, high + room];
}

/** Labels of values above the ceiling that have room beside each other. */
const MARK_ROOM_PX = 64;

/** The chosen x, and what lies above the axis: never cut off without a word. */
function drawMarks(plot: uPlot, { x, series, ceiling, isLog, selected, formatY }: Props): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio || 1;
  ctx.save();
  ctx.font = `${11 * ratio}px ${token('--font')}`;
  ctx.textBaseline = 'top';
  if (selected && x.length > 0 && selected.x >= x[0]! && selected.x <= x.at(-1)!) {
    const at = plot.valToPos(selected.x, 'x', true);
    ctx.fillStyle = token('--accent');
    ctx.fillRect(at - ratio, bbox.top, 2 * ratio, bbox.height);
    const isRight = at > bbox.left + bbox.width * 0.85;
    ctx.textAlign = isRight ? 'right' : 'left';
    ctx.fillText(selected.label, at + (isRight ? -6 : 6) * ratio, bbox.top + bbox.height * 0.32);
  }
  if (ceiling != null && !isLog) {
    ctx.fillStyle = token('--bad');
    let labelled = -Infinity;
    x.forEach((value, index) => {
      const highest = series.reduce((most, one) => Math.max(most, one.values[index] ?? 0), 0);
      if (highest <= ceiling) return;
      const at = plot.valToPos(value, 'x', true);
      ctx.beginPath();
      ctx.moveTo(at, bbox.top + ratio);
      ctx.lineTo(at - 4 * ratio, bbox.top + 8 * ratio);
      ctx.lineTo(at + 4 * ratio, bbox.top + 8 * ratio);
      ctx.fill();
      if (at < labelled + MARK_ROOM_PX * ratio) return;
      labelled = at;
      const isRight = at > bbox.left + bbox.width * 0.9;
      ctx.textAlign = isRight ? 'right' : 'left';
      ctx.fillText(formatY(highest), at + (isRight ? -7 : 7) * ratio, bbox.top + ratio);
    });
  }
  ctx.restore();
}

function tint(plot: uPlot, marked: readonly (readonly [number, number])[]): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.fillStyle = token('--surface-selected');
  for (const [first, last] of marked) {
    const left = Math.max(bbox.left, plot.valToPos(first, 'x', true));
    const right = Math.min(bbox.left + bbox.width, plot.valToPos(last, 'x', true));
    if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height);
  }
  ctx.restore();
}
