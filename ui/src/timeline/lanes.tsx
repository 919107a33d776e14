/** Lanes: their heads at the left, their events on a canvas beside them. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { asFailure, get, ofRun } from '../api';
import { t } from '../i18n';
import { theme } from '../theme';
import * as units from '../units';
import { colours, curveValue, drawLanes, prepared, valueAt } from './draw';
import {
  ROW_HEIGHT,
  heightOf,
  laneAt,
  lanesIn,
  rowAt,
  rowsOf,
  trackTitle,
  type Lane,
} from './layout';
import { palette } from './palette';
import type { TimelineState } from './state';
import { counts, note, shiftFor, type CurveStore, type StripStore } from './stores';
import type { Brief } from './types';
import { useDrawing, useSize } from './use_canvas';
import { moved, zoomed } from './view';

/** A press that moves less is a click. */
const DRAG_PX = 4;
/** A pixel to each side counts as pointed at. */
const NEAR_PX = 2;
const WHEEL_ZOOM = 0.0022;

interface Props {
  readonly state: TimelineState;
  readonly lanes: readonly Lane[];
  readonly label: string;
  readonly isPinned?: boolean;
}

export function Lanes({ state, lanes, label, isPinned = false }: Props) {
  const [scroll, size] = useSize<HTMLDivElement>();
  const [area, areaSize] = useSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [top, setTop] = useState(0);
  const strips = useMemo(() => state.newStrips(), [state]);
  const curves = useMemo(() => state.newCurves(), [state]);
  useEffect(() => () => state.forget(strips, curves), [state]);
  const { width } = areaSize;
  useEffect(() => {
    if (!isPinned) state.width.value = width;
  }, [state, width]);
  const { height } = size;
  const paint = useMemo(() => palette(state.meta), [state, theme.value]);
  const tones = useMemo(colours, [theme.value]);
  useDrawing(() => {
    void state.fresh.value;
    const view = state.view.value;
    if (canvas.current === null || width === 0) return;
    const began = performance.now();
    const scrolled = scroll.current?.scrollTop ?? top;
    const seen = lanesIn(lanes, scrolled, scrolled + height);
    const near = lanesIn(lanes, scrolled - height, scrolled + 2 * height);
    strips.want(view, rowsOf(seen), rowsOf(near), width);
    curves.want(view, numbersOf(seen), width);
    if (state.stepRow !== null) state.steps.want(view, [state.stepRow], [state.stepRow], width);
    const context = prepared(canvas.current, width, height);
    if (context === null) return;
    const blank = drawLanes({
      context,
      state,
      palette: paint,
      colours: tones,
      strips,
      curves,
      lanes,
      view,
      width,
      height,
      top: scrolled,
    });
    counts.frames++;
    note(counts.drawMs, performance.now() - began);
    if (blank > 0) counts.blankFrames++;
    else if (counts.firstPaintMs === null && !isPinned) {
      counts.firstPaintMs = performance.now();
      document.documentElement.dataset.timelinePainted = '1';
    }
  }, [state, lanes, width, height, top, paint, tones]);
  useReveal(state, lanes, scroll, isPinned);
  const pointer = usePointer({ state, lanes, width, scroll });
  return (
    <div
      ref={scroll}
      class={isPinned ? 'tl-scroll tl-pinned' : 'tl-scroll'}
      style={isPinned ? { height: `${Math.min(heightOf(lanes), 320)}px` } : undefined}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <div class="tl-tall" style={{ height: `${heightOf(lanes)}px` }}>
        <div class="tl-heads" role="list" aria-label={label}>
          {lanesIn(lanes, top - 200, top + height + 200).map((lane) => (
            <Head
              key={lane.key}
              lane={lane}
              state={state}
              strips={strips}
              curves={curves}
              width={width}
            />
          ))}
        </div>
        <div ref={area} class="tl-area">
          <canvas
            ref={canvas}
            class="tl-canvas"
            style={{ width: `${width}px`, height: `${height}px` }}
            tabIndex={isPinned ? -1 : 0}
            role="application"
            aria-label={t('timeline.canvas')}
            aria-describedby="tl-keys"
            {...pointer}
          />
        </div>
      </div>
    </div>
  );
}

function numbersOf(lanes: readonly Lane[]): number[] {
  return lanes
    .flatMap((lane) => (lane.kind === 'curve' ? [lane.number] : []))
    .sort((a, b) => a - b);
}

/** Scrolls to a row that is to be seen. */
function useReveal(
  state: TimelineState,
  lanes: readonly Lane[],
  scroll: { current: HTMLDivElement | null },
  isPinned: boolean,
): void {
  const wanted = state.reveal.value;
  useEffect(() => {
    if (wanted === null) return;
    if (!isPinned) state.open(wanted.row);
    const lane = lanes.find(
      (one) =>
        one.kind === 'track' &&
        wanted.row >= one.track.first_row &&
        wanted.row < one.track.first_row + one.track.rows,
    );
    const box = scroll.current;
    if (lane?.kind !== 'track' || box === null) return;
    const y = lane.y + Math.min(wanted.row - lane.track.first_row, lane.shownRows - 1) * ROW_HEIGHT;
    if (y < box.scrollTop || y + ROW_HEIGHT > box.scrollTop + box.clientHeight)
      box.scrollTop = Math.max(0, y - box.clientHeight / 2);
    // Once it is there, scrolling is the user's again.
    if (wanted.row - lane.track.first_row < lane.shownRows) state.reveal.value = null;
  }, [wanted, lanes]);
}

interface HeadProps {
  readonly lane: Lane;
  readonly state: TimelineState;
  readonly strips: StripStore;
  readonly curves: CurveStore;
  readonly width: number;
}

function Head({ lane, state, strips, curves, width }: HeadProps) {
  const style = { top: `${lane.y}px`, height: `${lane.height}px` };
  switch (lane.kind) {
    case 'rank':
      return (
        <div class="tl-head tl-rank" style={style} role="listitem">
          <Opener
            isOpen={lane.isOpen}
            label={`${t('timeline.rank', { rank: lane.rank })}`}
            onClick={() => state.toggle(lane.key)}
          />
          {lane.hidden > 0 && (
            <span class="dim small">{t('timeline.hiddenTracks', { count: lane.hidden })}</span>
          )}
        </div>
      );
    case 'curves':
      return (
        <div class="tl-head tl-group" style={style} role="listitem">
          <Opener
            isOpen={lane.isOpen}
            label={t('timeline.counters', { count: lane.count })}
            onClick={() => state.toggle(lane.key)}
          />
        </div>
      );
    case 'track':
      return (
        <div class="tl-head tl-track" style={style} role="listitem">
          {lane.track.rows > 1 ? (
            <Opener
              isOpen={lane.isOpen}
              label={trackTitle(lane.track)}
              onClick={() => state.toggle(lane.key)}
            />
          ) : (
            <span class="tl-name" title={trackTitle(lane.track)}>
              {trackTitle(lane.track)}
            </span>
          )}
          <Busy lane={lane} state={state} strips={strips} width={width} />
          <Pin state={state} lane={lane} name={trackTitle(lane.track)} />
        </div>
      );
    case 'curve':
      return (
        <div class="tl-head tl-curve" style={style} role="listitem">
          <span class="tl-name" title={lane.curve.name}>
            {lane.curve.name}
          </span>
          <Pin state={state} lane={lane} name={lane.curve.name} />
          <CurveNow lane={lane} state={state} curves={curves} />
        </div>
      );
  }
}

function Opener({
  isOpen,
  label,
  onClick,
}: {
  isOpen: boolean;
  label: string;
  onClick: () => void;
}) {
  return (
    <button type="button" class="tl-opener" aria-expanded={isOpen} onClick={onClick} title={label}>
      <span class="tl-arrow" aria-hidden="true">
        {isOpen ? '▾' : '▸'}
      </span>
      <span class="tl-name">{label}</span>
    </button>
  );
}

function Pin({ state, lane, name }: { state: TimelineState; lane: Lane; name: string }) {
  const isPinned = state.pinned.value.has(lane.key);
  return (
    <button
      type="button"
      class="tl-pin"
      aria-pressed={isPinned}
      aria-label={t(isPinned ? 'timeline.unpin' : 'timeline.pin', { name })}
      title={t(isPinned ? 'timeline.unpin' : 'timeline.pin', { name })}
      onClick={() => state.pin(lane.key)}
    >
      <svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
        <path
          d="M9.5 1.5 14.5 6.5 11.5 7.5 9 11.5 4.5 7 8.5 4.5ZM6.5 9.5 2 14"
          fill="currentColor"
          stroke="currentColor"
          stroke-width="1.2"
        />
      </svg>
    </button>
  );
}

/** The part of what is seen in which the track does something. */
function Busy({
  lane,
  state,
  strips,
  width,
}: {
  lane: Lane & { kind: 'track' };
  state: TimelineState;
  strips: StripStore;
  width: number;
}) {
  const view = state.calmView.value;
  void state.fresh.value;
  // Steps tile the time, and of rows that overlap each other one alone says little.
  if (lane.track.device === 'steps' || lane.track.overlapping > 0) return null;
  const t0 = Math.max(view.t0, state.meta.begin_ns);
  const t1 = Math.min(view.t1, state.meta.end_ns);
  const share = strips
    .best(lane.track.first_row, view, shiftFor(view, width, state.meta))
    ?.busyShare(lane.track.first_row, t0, t1);
  return share == null ? null : (
    <span class="tl-busy" title={t('timeline.busy')}>
      {units.percent(share)}
    </span>
  );
}

function CurveNow({
  lane,
  state,
  curves,
}: {
  lane: Lane & { kind: 'curve' };
  state: TimelineState;
  curves: CurveStore;
}) {
  void state.fresh.value;
  const moment = state.hover.value?.moment;
  const curve = curves.curve(lane.number);
  const value = moment !== undefined && curve !== null ? valueAt(curve, moment) : null;
  const text =
    value === null
      ? t('timeline.range', {
          low: curveValue(lane.curve.name, lane.curve.lowest),
          high: curveValue(lane.curve.name, lane.curve.highest),
        })
      : curveValue(lane.curve.name, value);
  return <span class="tl-value">{text}</span>;
}

interface PointerProps {
  readonly state: TimelineState;
  readonly lanes: readonly Lane[];
  readonly width: number;
  readonly scroll: { current: HTMLDivElement | null };
}

type Press = {
  readonly x: number;
  readonly y: number;
  readonly moment: number;
  isDragged: boolean;
  readonly isPan: boolean;
  lastX: number;
};

function usePointer({ state, lanes, width, scroll }: PointerProps) {
  const press = useRef<Press | null>(null);
  const place = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const x = event.clientX - box.left;
    const view = state.view.value;
    return {
      x,
      y: event.clientY - box.top + (scroll.current?.scrollTop ?? 0),
      moment: view.t0 + (x / Math.max(1, width)) * (view.t1 - view.t0),
    };
  };
  const rowOf = (y: number) => {
    const lane = laneAt(lanes, y);
    return lane === null ? null : rowAt(lane, y);
  };
  useEffect(() => {
    const element = scroll.current?.querySelector('canvas') ?? null;
    if (element === null) return;
    const onWheel = (event: WheelEvent) => {
      const view = state.view.value;
      const box = element.getBoundingClientRect();
      const at =
        view.t0 + ((event.clientX - box.left) / Math.max(1, box.width)) * (view.t1 - view.t0);
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        state.view.value = zoomed(view, Math.exp(event.deltaY * WHEEL_ZOOM), at, state.limits);
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        const by = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.deltaY;
        state.view.value = moved(
          view,
          (by / Math.max(1, box.width)) * (view.t1 - view.t0),
          state.limits,
        );
      }
    };
    // Not passive: the browser must not zoom the page.
    element.addEventListener('wheel', onWheel, { passive: false });
    return () => element.removeEventListener('wheel', onWheel);
  }, [state]);
  return {
    onPointerDown: (event: PointerEvent) => {
      if (event.button > 1) return;
      const { x, y, moment } = place(event);
      press.current = {
        x,
        y,
        moment,
        isDragged: false,
        isPan: event.shiftKey || event.button === 1,
        lastX: x,
      };
      (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent) => {
      const { x, y, moment } = place(event);
      state.hover.value = { moment, row: rowOf(y), x: event.clientX, y: event.clientY };
      const now = press.current;
      if (now === null) return;
      if (!now.isDragged && Math.hypot(x - now.x, y - now.y) < DRAG_PX) return;
      now.isDragged = true;
      const view = state.view.value;
      if (now.isPan)
        state.view.value = moved(
          view,
          ((now.lastX - x) / Math.max(1, width)) * (view.t1 - view.t0),
          state.limits,
        );
      else state.area.value = areaBetween(lanes, now, { y, moment });
      now.lastX = x;
    },
    onPointerUp: (event: PointerEvent) => {
      const now = press.current;
      press.current = null;
      if (now === null) return;
      const { y, moment } = place(event);
      if (now.isDragged && !now.isPan) state.chooseArea(areaBetween(lanes, now, { y, moment }));
      else if (!now.isDragged) void selectAt(state, rowOf(now.y), now.moment, width);
    },
    onPointerLeave: () => {
      state.hover.value = null;
    },
    onDblClick: () => state.focus(),
  };
}

function areaBetween(
  lanes: readonly Lane[],
  from: { readonly y: number; readonly moment: number },
  to: { readonly y: number; readonly moment: number },
) {
  const [top, bottom] = [Math.min(from.y, to.y), Math.max(from.y, to.y)];
  const rows = lanesIn(lanes, top, bottom + 1).flatMap((lane) => {
    if (lane.kind !== 'track') return [];
    const first = Math.max(0, Math.floor((top - lane.y) / ROW_HEIGHT));
    const last = Math.min(lane.shownRows - 1, Math.floor((bottom - lane.y) / ROW_HEIGHT));
    return Array.from(
      { length: Math.max(0, last - first + 1) },
      (_, at) => lane.track.first_row + first + at,
    );
  });
  return {
    t0: Math.round(Math.min(from.moment, to.moment)),
    t1: Math.round(Math.max(from.moment, to.moment, Math.min(from.moment, to.moment) + 1)),
    rows,
  };
}

async function selectAt(
  state: TimelineState,
  row: number | null,
  moment: number,
  width: number,
): Promise<void> {
  if (row === null) return state.select(null);
  const near = ((state.view.value.t1 - state.view.value.t0) / Math.max(1, width)) * NEAR_PX;
  try {
    const ask = (by: number) =>
      get<{ event: Brief | null }>(ofRun(state.run, 'timeline/at'), {
        index: state.meta.index,
        row,
        t0: Math.floor(moment - by),
        t1: Math.max(Math.floor(moment - by) + 1, Math.ceil(moment + by)),
      });
    // What lies exactly there wins over a longer neighbour.
    const { event } = await ask(0);
    await state.select((event ?? (await ask(near)).event)?.id ?? null);
  } catch (error) {
    state.failure.value = asFailure(error);
  }
}
