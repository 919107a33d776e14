/** Addresses of things on other pages. */

import { hrefOfPage } from '../router';

interface Place {
  readonly event?: number | null;
  readonly ts_ns: number;
  readonly dur_ns: number;
}

/** What is around an event is seen as well: this many times its length on either side. */
const ROOM = 8;
/** An instant has no length of its own. */
const LEAST_ROOM_NS = 2_000;

/** The timeline, with an event chosen and in the middle. */
export function onTimeline(run: string, { event, ts_ns, dur_ns }: Place): string {
  const room = Math.max(LEAST_ROOM_NS, dur_ns * ROOM);
  return hrefOfPage('timeline', run, {
    t0: String(Math.max(0, Math.floor(ts_ns - room))),
    t1: String(Math.ceil(ts_ns + dur_ns + room)),
    ...(event === null || event === undefined ? {} : { sel: String(event) }),
  });
}
