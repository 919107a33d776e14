/** The whole run at a glance: where something happens, what was found, and which part is seen below. */

import { useMemo, useRef } from 'preact/hooks';
import { t } from '../i18n';
import { theme } from '../theme';
import { colours, prepared, xOf } from './draw';
import { palette } from './palette';
import type { TimelineState } from './state';
import { shiftFor } from './stores';
import type { Stretch, View } from './types';
import { useDrawing } from './use_canvas';
import { around, whole, zoomed } from './view';

const HEIGHT = 40;
/** One thin line for each track; of more tracks some. */
const MOST_TRACKS = 20;
const HITS_HEIGHT = 5;
const EDGE_PX = 5;
const STRETCH_PX = 4;
/** A click so near to where something was recorded means that. */
const NEAR_PX = 12;

type Drag = {
  readonly kind: 'move' | 'draw' | 'left' | 'right';
  readonly from: number;
  readonly view: View;
};

export function Overview({ state }: { state: TimelineState }) {
  const width = state.width.value;
  const canvas = useRef<HTMLCanvasElement>(null);
  const strips = useMemo(() => state.newStrips(), [state]);
  const paint = useMemo(() => palette(state.meta), [state, theme.value]);
  const tones = useMemo(colours, [theme.value]);
  const rows = useMemo(() => overviewRows(state), [state, state.meta]);
  const drag = useRef<Drag | null>(null);
  const all = state.limits;
  useDrawing(() => {
    void state.fresh.value;
    const view = state.view.value;
    if (canvas.current === null || width === 0) return;
    strips.want(all, rows, rows, width);
    const context = prepared(canvas.current, width, HEIGHT);
    if (context === null) return;
    context.fillStyle = tones.surface;
    context.fillRect(0, 0, width, HEIGHT);
    const strip =
      rows[0] === undefined ? null : strips.best(rows[0], all, shiftFor(all, width, state.meta));
    if (strip !== null) {
      strip.draw(paint, null);
      const x = xOf(strip.t0, all, width);
      context.imageSmoothingEnabled = false;
      context.drawImage(
        strip.image,
        0,
        0,
        strip.buckets,
        rows.length,
        x,
        3,
        xOf(strip.t1, all, width) - x,
        HEIGHT - 6,
      );
    }
    drawStretches(context, state, width, tones.text);
    drawHits(context, state, width, tones.accent);
    const [left, right] = [xOf(view.t0, all, width), xOf(view.t1, all, width)];
    context.fillStyle = tones.low;
    context.globalAlpha = 0.72;
    context.fillRect(0, 0, Math.max(0, left), HEIGHT);
    context.fillRect(right, 0, Math.max(0, width - right), HEIGHT);
    context.globalAlpha = 1;
    context.strokeStyle = tones.accent;
    context.lineWidth = 1.5;
    context.strokeRect(
      Math.max(0.75, left),
      0.75,
      Math.max(3, Math.min(width - 0.75, right) - Math.max(0.75, left)),
      HEIGHT - 1.5,
    );
  }, [state, width, paint, tones, rows]);
  const momentAt = (event: PointerEvent) =>
    all.t0 +
    ((event.clientX - (event.currentTarget as HTMLElement).getBoundingClientRect().left) /
      Math.max(1, width)) *
      (all.t1 - all.t0);
  return (
    <div class="tl-overview">
      <div class="tl-heads-space dim small">{t('timeline.overview')}</div>
      <div class="tl-ruler-area">
        <canvas
          ref={canvas}
          style={{ width: `${width}px`, height: `${HEIGHT}px` }}
          aria-hidden="true"
          onPointerDown={(event: PointerEvent) => {
            (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
            const at = momentAt(event);
            drag.current = {
              kind: kindOfDrag(
                at,
                state.view.value,
                ((all.t1 - all.t0) / Math.max(1, width)) * EDGE_PX,
                all,
              ),
              from: at,
              view: state.view.value,
            };
          }}
          onPointerMove={(event: PointerEvent) => {
            if (drag.current !== null)
              state.view.value = dragged(drag.current, momentAt(event), all);
          }}
          onPointerUp={(event: PointerEvent) => {
            const now = drag.current;
            drag.current = null;
            const at = momentAt(event);
            // A click without a move brings that place to the middle, or what was recorded near it.
            if (now?.kind === 'draw' && Math.abs(at - now.from) < (all.t1 - all.t0) / 500) {
              const near = nearest(
                state.meta.stretches,
                at,
                ((all.t1 - all.t0) / Math.max(1, width)) * NEAR_PX,
              );
              if (near !== null) {
                state.jump(whole(near.begin_ns, near.end_ns));
                return;
              }
              const span = now.view.t1 - now.view.t0;
              state.view.value = zoomed({ t0: at - span / 2, t1: at + span / 2 }, 1, at, all);
            }
          }}
        />
      </div>
    </div>
  );
}

/** Of parts that are hours apart, each at least so wide that it is seen and hit. */
function drawStretches(
  context: CanvasRenderingContext2D,
  state: TimelineState,
  width: number,
  colour: string,
): void {
  const { stretches } = state.meta;
  if (stretches.length < 2) return;
  context.fillStyle = colour;
  for (const { begin_ns, end_ns } of stretches) {
    const x = xOf(begin_ns, state.limits, width);
    const wide = xOf(end_ns, state.limits, width) - x;
    if (wide < STRETCH_PX)
      context.fillRect(x + wide / 2 - STRETCH_PX / 2, 3, STRETCH_PX, HEIGHT - 6);
  }
}

function nearest(stretches: readonly Stretch[], at: number, near: number): Stretch | null {
  if (stretches.length < 2) return null;
  const far = ({ begin_ns, end_ns }: Stretch) => Math.max(begin_ns - at, at - end_ns, 0);
  const best = stretches.reduce((one, other) => (far(other) < far(one) ? other : one));
  return far(best) <= near ? best : null;
}

function drawHits(
  context: CanvasRenderingContext2D,
  state: TimelineState,
  width: number,
  colour: string,
): void {
  const found = state.found.value;
  if (found === null || found.total === 0) return;
  const most = Math.max(...found.density);
  const { begin_ns: begin, end_ns: end } = state.meta;
  context.fillStyle = colour;
  found.density.forEach((count, at) => {
    if (count === 0) return;
    const x = xOf(begin + ((end - begin) * at) / found.density.length, state.limits, width);
    const high = HITS_HEIGHT * (0.5 + (0.5 * count) / most);
    context.fillRect(x, HEIGHT - high, Math.max(1.5, width / found.density.length), high);
  });
}

/** The outermost row of each track, of many tracks evenly some. */
function overviewRows(state: TimelineState): number[] {
  const rows = state.meta.tracks.map((track) => track.first_row);
  if (rows.length <= MOST_TRACKS) return rows;
  return Array.from(
    { length: MOST_TRACKS },
    (_, at) => rows[Math.floor((at * rows.length) / MOST_TRACKS)] ?? 0,
  );
}

function kindOfDrag(at: number, view: View, near: number, all: View): Drag['kind'] {
  if (Math.abs(at - view.t0) < near) return 'left';
  if (Math.abs(at - view.t1) < near) return 'right';
  const isWhole = view.t1 - view.t0 > (all.t1 - all.t0) * 0.98;
  return at > view.t0 && at < view.t1 && !isWhole ? 'move' : 'draw';
}

function dragged({ kind, from, view }: Drag, at: number, all: View): View {
  const least = (all.t1 - all.t0) / 1e6;
  switch (kind) {
    case 'move':
      return { t0: view.t0 + at - from, t1: view.t1 + at - from };
    case 'left':
      return { t0: Math.min(at, view.t1 - least), t1: view.t1 };
    case 'right':
      return { t0: view.t0, t1: Math.max(at, view.t0 + least) };
    case 'draw':
      return Math.abs(at - from) < (all.t1 - all.t0) / 500
        ? view
        : around(Math.min(at, from), Math.max(at, from), all, 0);
  }
}
