/** A timeline of tracks and curves for tests, as the server describes it. */

import type { CurveAbout, Meta, Track } from '../../src/timeline/types';

export function track(
  id: number,
  first_row: number,
  rows: number,
  more: Partial<Track> = {},
): Track {
  return {
    id,
    rank: 0,
    device: 'cpu',
    name: `thread ${id}`,
    process: 1,
    thread: id,
    first_row,
    rows,
    overlapping: 0,
    events: 10,
    ...more,
  };
}

export function curve(rank: number, name: string): CurveAbout {
  return { rank, name, values: 3, lowest: 0, highest: 1 };
}

export function meta(tracks: readonly Track[], curves: readonly CurveAbout[] = []): Meta {
  return {
    ready: true,
    index: 'one',
    is_live: false,
    begin_ns: 0,
    end_ns: 1_000_000,
    stretches: [],
    coarsest_shift: 11,
    events: 100,
    tracks,
    curves,
    names: 1,
    colours: { by_name: 240, fixed: [] },
  };
}
