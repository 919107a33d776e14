/** The stretch of time that is seen, and how it moves. Pure: a view in, a view out. */

import type { View } from './types';

/** Nobody needs to see less: 20 ns over the whole screen. */
const SHORTEST_NS = 20;
/** How far past the ends one can go, as a part of what is seen: enough to have an end in the middle. */
const BEYOND = 0.5;

export function whole(begin: number, end: number): View {
  const margin = Math.max(SHORTEST_NS / 2, (end - begin) * 0.01);
  return { t0: begin - margin, t1: end + margin };
}

/** `factor` below 1 shows less. What is at `at` (a moment) stays where it is. */
export function zoomed(view: View, factor: number, at: number, limits: View): View {
  const span = clamp((view.t1 - view.t0) * factor, SHORTEST_NS, limits.t1 - limits.t0);
  const share = (at - view.t0) / (view.t1 - view.t0);
  return within({ t0: at - share * span, t1: at + (1 - share) * span }, limits);
}

export function moved(view: View, by: number, limits: View): View {
  return within({ t0: view.t0 + by, t1: view.t1 + by }, limits);
}

/** An event or an area in the middle, with some room around it. */
export function around(t0: number, t1: number, limits: View, room = 0.15): View {
  const span = clamp((t1 - t0) * (1 + 2 * room), SHORTEST_NS, limits.t1 - limits.t0);
  const middle = (t0 + t1) / 2;
  return within({ t0: middle - span / 2, t1: middle + span / 2 }, limits);
}

/** Moves the view only as far as is needed to see the stretch, and shows more only if it must. */
export function showing(view: View, t0: number, t1: number, limits: View): View {
  const span = view.t1 - view.t0;
  if (t1 - t0 > span * 0.9) return around(t0, t1, limits);
  if (t0 >= view.t0 && t1 <= view.t1 && t1 - t0 >= span / 2000) return view;
  // Too short to see at this zoom: so that it takes a twentieth of the screen.
  if (t1 - t0 < span / 2000) return around(t0, Math.max(t1, t0 + 1), limits, 10);
  const middle = (t0 + t1) / 2;
  return within({ t0: middle - span / 2, t1: middle + span / 2 }, limits);
}

/** As much as now, with the end in sight and a little room behind it. */
export function atEnd(view: View, end: number): View {
  const span = view.t1 - view.t0;
  return { t0: end - span * 0.95, t1: end + span * 0.05 };
}

/** What is seen after the run has grown. The whole stays the whole; who looks at the end goes on looking at it. */
export function grown(view: View, before: Ends, after: Ends, isFollowing: boolean): View {
  const all = whole(before.begin_ns, before.end_ns);
  if (view.t0 === all.t0 && view.t1 === all.t1) return whole(after.begin_ns, after.end_ns);
  const by = after.end_ns - before.end_ns;
  return isFollowing && by !== 0 && view.t1 >= before.end_ns
    ? { t0: view.t0 + by, t1: view.t1 + by }
    : view;
}

export interface Ends {
  readonly begin_ns: number;
  readonly end_ns: number;
}

function within(view: View, limits: View): View {
  const span = view.t1 - view.t0;
  const t0 = clamp(view.t0, limits.t0 - span * BEYOND, limits.t1 - span * (1 - BEYOND));
  return { t0, t1: t0 + span };
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
