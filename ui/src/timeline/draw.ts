/** Draws lanes on a canvas. What is drawn was worked out before: this file only paints. */

import { token } from '../theme';
import * as units from '../units';
import { CURVE_HEIGHT, ROW_HEIGHT, lanesIn, type Lane } from './layout';
import type { Palette } from './palette';
import { shiftFor, type CurveStore, type DrawnCurve, type StripStore } from './stores';
import { shownName } from './shown_name';
import type { TimelineState } from './state';
import { COLOUR_BITS, type Strip } from './strip';
import type { Brief, View } from './types';

/** Pixels between the events of two rows. */
const ROW_LINE = 2;
const LABEL_FONT = '11px system-ui, sans-serif';
/** An event narrower than that has no room for a word. */
const LABEL_PX = 22;
const LETTER_PX = 6;
/** Less of a name than that tells nothing. */
const LEAST_LETTERS = 4;
/** Steps narrower than that, on the average, are not ruled: the lines would hide everything. */
const RULED_STEP_PX = 12;

export interface Colours {
  readonly surface: string;
  readonly low: string;
  readonly line: string;
  readonly strong: string;
  readonly text: string;
  readonly dim: string;
  readonly accent: string;
}

export function colours(): Colours {
  return {
    surface: token('--surface'),
    low: token('--surface-low'),
    line: token('--line'),
    strong: token('--line-strong'),
    text: token('--text'),
    dim: token('--text-dim'),
    accent: token('--accent'),
  };
}

export interface Frame {
  readonly context: CanvasRenderingContext2D;
  readonly state: TimelineState;
  readonly palette: Palette;
  readonly colours: Colours;
  readonly strips: StripStore;
  readonly curves: CurveStore;
  readonly lanes: readonly Lane[];
  readonly view: View;
  readonly width: number;
  readonly height: number;
  readonly top: number;
}

/** Gives canvases the pixels of the screen; returns what to draw on, in the units of the page. */
export function prepared(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
): CanvasRenderingContext2D | null {
  const ratio = globalThis.devicePixelRatio || 1;
  const [wide, high] = [
    Math.max(1, Math.round(width * ratio)),
    Math.max(1, Math.round(height * ratio)),
  ];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const context = canvas.getContext('2d', { alpha: false });
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

export const xOf = (moment: number, view: View, width: number) =>
  ((moment - view.t0) / (view.t1 - view.t0)) * width;

/** Returns how many tracks had nothing to draw yet. */
export function drawLanes(frame: Frame): number {
  const { context, colours: c, width, height, top, lanes, state } = frame;
  context.fillStyle = c.surface;
  context.fillRect(0, 0, width, height);
  const visible = lanesIn(lanes, top, top + height);
  const shift = shiftFor(frame.view, width, state.meta);
  let blank = 0;
  for (const lane of visible) {
    const y = lane.y - top;
    switch (lane.kind) {
      case 'track':
        if (!drawTrack(frame, lane, y, shift)) blank++;
        break;
      case 'curve':
        drawCurve(frame, frame.curves.curve(lane.number), y, lane.curve.lowest, lane.curve.highest);
        break;
      default:
        context.fillStyle = c.low;
        context.fillRect(0, y, width, lane.height);
    }
  }
  drawStepRules(frame);
  drawEnds(frame);
  drawArea(frame, visible);
  drawFlows(frame);
  drawSelected(frame);
  drawCrosshair(frame);
  return blank;
}

function drawTrack(
  frame: Frame,
  lane: Lane & { kind: 'track' },
  y: number,
  shift: number,
): boolean {
  const { context, view, width, palette, state, colours: c } = frame;
  const first = lane.track.first_row;
  const strip = frame.strips.best(first, view, shift);
  if (strip === null) return state.meta.begin_ns > view.t1 || state.meta.end_ns < view.t0;
  strip.draw(palette, state.foundNames.value);
  const place = strip.placeOfRow.get(first) ?? 0;
  const from = Math.max(view.t0, strip.t0);
  const to = Math.min(view.t1, strip.t1);
  if (to <= from) return false;
  const x = xOf(from, view, width);
  const height = lane.shownRows * ROW_HEIGHT;
  context.imageSmoothingEnabled = false;
  context.drawImage(
    strip.image,
    (from - strip.t0) / strip.bucketNs,
    place,
    (to - from) / strip.bucketNs,
    lane.shownRows,
    x,
    y,
    xOf(to, view, width) - x,
    height,
  );
  context.fillStyle = c.surface;
  for (let row = 1; row <= lane.shownRows; row++)
    context.fillRect(0, y + row * ROW_HEIGHT - ROW_LINE, width, ROW_LINE);
  drawLabels(frame, strip, place, lane.shownRows, y);
  return true;
}

function drawLabels(frame: Frame, strip: Strip, place: number, rows: number, y: number): void {
  const { context, view, width, palette, state, height } = frame;
  const found = state.foundNames.value;
  context.font = LABEL_FONT;
  context.textBaseline = 'middle';
  for (let row = 0; row < rows; row++) {
    const middle = y + row * ROW_HEIGHT + (ROW_HEIGHT - ROW_LINE) / 2 + 0.5;
    if (middle < -ROW_HEIGHT || middle > height + ROW_HEIGHT) continue;
    for (const entry of strip.labels[place + row] ?? []) {
      const begin = strip.t0 + ((strip.x[entry] ?? 0) - 1) * strip.bucketNs;
      if (begin > view.t1) break;
      const end = begin + ((strip.width[entry] ?? 0) + 1) * strip.bucketNs;
      const left = Math.max(0, xOf(begin, view, width));
      const room = Math.min(width, xOf(end, view, width)) - left;
      if (room < LABEL_PX) continue;
      const paint = strip.paint[entry] ?? 0;
      if (found !== null && !found.has(paint >>> COLOUR_BITS)) continue;
      const code = paint >>> COLOUR_BITS;
      const recorded = state.names.name(code);
      const name = recorded === null ? null : shownName(state.names.kind(code), recorded);
      if (name === null) continue;
      context.fillStyle = palette.texts[paint & 0xff] ?? '#000';
      context.fillText(fitted(name, Math.floor((room - 8) / LETTER_PX)), left + 4, middle);
    }
  }
}

function drawCurve(
  frame: Frame,
  curve: DrawnCurve | null,
  y: number,
  lowest: number,
  highest: number,
): void {
  const { context, width, view, colours: c } = frame;
  if (curve === null) return;
  // From zero where that is near: the height of a curve then tells its size.
  const base = lowest >= 0 && lowest < highest / 2 ? 0 : lowest;
  const scale = highest > base ? (CURVE_HEIGHT - 6) / (highest - base) : 0;
  const up = (value: number) => y + CURVE_HEIGHT - 2 - Math.max(1, (value - base) * scale);
  const step = (curve.t1 - curve.t0) / curve.buckets;
  const right = xOf(Math.min(view.t1, frame.state.meta.end_ns), view, width);
  context.fillStyle = c.accent;
  let value = curve.before;
  let x = 0;
  context.globalAlpha = 0.35;
  const fillTo = (next: number) => {
    if (value !== null && next > x)
      context.fillRect(x, up(value), next - x, y + CURVE_HEIGHT - 2 - up(value));
    x = Math.max(x, next);
  };
  for (let at = 0; at < curve.bucket.length; at++) {
    const left = xOf(curve.t0 + (curve.bucket[at] ?? 0) * step, view, width);
    if (left > 0) fillTo(Math.min(left, right));
    value = curve.last[at] ?? value;
    if (left > right) break;
  }
  fillTo(right);
  context.globalAlpha = 1;
  for (let at = 0; at < curve.bucket.length; at++) {
    const left = xOf(curve.t0 + (curve.bucket[at] ?? 0) * step, view, width);
    if (left < 0 || left > width) continue;
    const high = up(curve.high[at] ?? 0);
    context.fillRect(left, high, 1.2, Math.max(1.2, up(curve.low[at] ?? 0) - high));
  }
}

/** The value of a curve at a moment. */
export function valueAt(curve: DrawnCurve, moment: number): number | null {
  const bucket = Math.floor(((moment - curve.t0) / (curve.t1 - curve.t0)) * curve.buckets);
  let low = 0;
  let high = curve.bucket.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((curve.bucket[middle] ?? 0) <= bucket) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? curve.before : (curve.last[low - 1] ?? null);
}

/** A number with the unit that ends the name of its counter. */
export function curveValue(name: string, value: number): string {
  const isPerSecond = / per second$/.test(name);
  const bare = name.replace(/ per second$/, '').replace(/_total$/, '');
  const text = /bytes/.test(bare)
    ? units.size(value)
    : /_ns$/.test(bare)
      ? units.duration(value)
      : /_ratio$/.test(bare)
        ? units.percent(value)
        : units.count(Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3)));
  return isPerSecond ? `${text}/s` : text;
}

/** Where steps begin that are in view; none if they are so many that lines would hide everything. */
export function stepStarts(
  state: TimelineState,
  view: View,
  width: number,
): { readonly x: number; readonly room: number; readonly code: number }[] {
  if (state.stepRow === null) return [];
  const strip = state.steps.best(state.stepRow, view, shiftFor(view, width, state.meta));
  const found: { x: number; room: number; code: number }[] = [];
  for (const { moment, paint } of strip?.starts(state.stepRow, view) ?? []) {
    const x = xOf(moment, view, width);
    const before = found[found.length - 1];
    if (before !== undefined) before.room = x - before.x;
    found.push({ x, room: width - x, code: paint >>> COLOUR_BITS });
  }
  return found.length * RULED_STEP_PX > width ? [] : found;
}

/** Where "step 12" has no room, 12 may have. */
export function fitted(name: string, letters: number): string {
  const short = name.length <= letters ? name : name.replace(/^step /, '');
  if (short.length <= letters) return short;
  return letters < LEAST_LETTERS ? '' : `${short.slice(0, letters - 1)}…`;
}

function drawStepRules({ context, state, view, width, height, colours: c }: Frame): void {
  context.fillStyle = c.strong;
  context.globalAlpha = 0.6;
  for (const { x } of stepStarts(state, view, width)) context.fillRect(Math.round(x), 0, 1, height);
  context.globalAlpha = 1;
}

/** Outside of the recording. */
function drawEnds({ context, state, view, width, height, colours: c }: Frame): void {
  context.fillStyle = c.low;
  const begin = xOf(state.meta.begin_ns, view, width);
  const end = xOf(state.meta.end_ns, view, width);
  if (begin > 0) context.fillRect(0, 0, Math.min(begin, width), height);
  if (end < width) context.fillRect(Math.max(0, end), 0, width - Math.max(0, end), height);
}

function drawArea(
  { context, state, view, width, top, colours: c }: Frame,
  visible: readonly Lane[],
): void {
  const area = state.area.value;
  if (area === null) return;
  const rows = new Set(area.rows);
  const left = xOf(area.t0, view, width);
  const right = xOf(area.t1, view, width);
  context.fillStyle = c.accent;
  context.globalAlpha = 0.16;
  for (const lane of visible) {
    if (lane.kind !== 'track') continue;
    for (let row = 0; row < lane.shownRows; row++) {
      if (rows.has(lane.track.first_row + row))
        context.fillRect(
          left,
          lane.y - top + row * ROW_HEIGHT,
          Math.max(1, right - left),
          ROW_HEIGHT,
        );
    }
  }
  context.globalAlpha = 0.9;
  for (const x of [left, right]) context.fillRect(Math.round(x), 0, 1, context.canvas.height);
  context.globalAlpha = 1;
}

/** Where an event lies on the canvas; null when its row is not among the lanes. */
function boxOf(frame: Frame, event: Brief): { x: number; y: number; width: number } | null {
  for (const lane of frame.lanes) {
    if (lane.kind !== 'track') continue;
    const depth = event.row - lane.track.first_row;
    if (depth < 0 || depth >= lane.track.rows) continue;
    const x = xOf(event.ts_ns, frame.view, frame.width);
    const shown = Math.min(depth, lane.shownRows - 1);
    return {
      x,
      y: lane.y - frame.top + shown * ROW_HEIGHT,
      width: Math.max(2, xOf(event.ts_ns + event.dur_ns, frame.view, frame.width) - x),
    };
  }
  return null;
}

function drawSelected(frame: Frame): void {
  const event = frame.state.selected.value?.event;
  const box = event && boxOf(frame, event);
  if (!box) return;
  frame.context.strokeStyle = frame.colours.text;
  frame.context.lineWidth = 2;
  // Cut to the canvas, or lines of billions of pixels would be drawn.
  const left = Math.max(-4, box.x);
  frame.context.strokeRect(
    left,
    box.y + 1,
    Math.min(frame.width + 4, box.x + box.width) - left,
    ROW_HEIGHT - ROW_LINE - 1,
  );
}

function drawFlows(frame: Frame): void {
  const selected = frame.state.selected.value;
  if (selected === null) return;
  const own = boxOf(frame, selected.event);
  if (own === null) return;
  frame.context.strokeStyle = frame.colours.accent;
  frame.context.fillStyle = frame.colours.accent;
  frame.context.lineWidth = 1.5;
  for (const cause of selected.causes) arrow(frame, boxOf(frame, cause), own);
  for (const effect of selected.effects) arrow(frame, own, boxOf(frame, effect));
}

type Box = { readonly x: number; readonly y: number; readonly width: number };

function arrow({ context, width }: Frame, from: Box | null, to: Box | null): void {
  if (from === null || to === null) return;
  const clamp = (x: number) => Math.min(width + 2000, Math.max(-2000, x));
  const [x0, y0] = [clamp(from.x + Math.min(from.width, 6)), from.y + ROW_HEIGHT / 2];
  const [x1, y1] = [clamp(to.x), to.y + ROW_HEIGHT / 2];
  const bend = Math.max(24, Math.abs(x1 - x0) * 0.4);
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
  context.stroke();
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 7, y1 - 4);
  context.lineTo(x1 - 7, y1 + 4);
  context.fill();
}

function drawCrosshair({ context, state, view, width, height, colours: c }: Frame): void {
  const hover = state.hover.value;
  if (hover === null) return;
  context.fillStyle = c.dim;
  context.globalAlpha = 0.5;
  context.fillRect(Math.round(xOf(hover.moment, view, width)), 0, 1, height);
  context.globalAlpha = 1;
}
