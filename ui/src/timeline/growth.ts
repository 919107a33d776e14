/** A timeline that takes up what was recorded since, while somebody looks at it: nothing but the end of it moves. */

import { batch } from '@preact/signals';
import { get, ofRun } from '../api';
import { trackKey } from './layout';
import type { TimelineState } from './state';
import type { Brief, Details, Found, Meta, Track } from './types';
import { grown } from './view';

/** Reading a run anew takes at most a part of the time: the training may run on the same machine. */
const READING_SHARE = 0.25;

/** What a number of the last index is in the next one. */
export interface Renumbered {
  row(row: number): number | null;
  curve(number: number): number | null;
}

export class Growth {
  private isBusy = false;
  private isWanted = false;

  constructor(
    private readonly state: TimelineState,
    private readonly signal: AbortSignal,
  ) {}

  /** Called whenever the run has grown; of several calls meanwhile, one more is made. */
  async grow(): Promise<void> {
    this.isWanted = true;
    if (this.isBusy) return;
    this.isBusy = true;
    while (this.isWanted && !this.signal.aborted) {
      this.isWanted = false;
      const began = performance.now();
      try {
        await get(ofRun(this.state.run, 'timeline/index'), {}, { signal: this.signal });
        await this.renew();
      } catch {
        // What is seen stays; the next steps are the next occasion.
      }
      await new Promise((resolve) =>
        setTimeout(resolve, (performance.now() - began) * (1 / READING_SHARE - 1)),
      );
    }
    this.isBusy = false;
  }

  /** Everything that is seen is fetched from the new index first, then shown at once. */
  async renew(): Promise<void> {
    const { state, signal } = this;
    const before = state.meta;
    const meta = await get<Meta>(ofRun(state.run, 'timeline'), {}, { signal });
    if (!meta.ready || meta.index === before.index) {
      state.isLive.value = meta.is_live ?? false;
      return;
    }
    const numbers = renumbered(before, meta);
    const after = (view: typeof state.view.value) => grown(view, before, meta, state.isFollowing);
    const names = state.names.renewed(meta.index);
    const [selected, found, ...shown] = await Promise.all([
      this.selectedIn(meta, numbers),
      state.query.value.trim() === ''
        ? null
        : get<Found>(
            ofRun(state.run, 'timeline/search'),
            { index: meta.index, q: state.query.value },
            { signal },
          ),
      ...[...state.stores].map((store) => store.renewed(meta, numbers, after)),
      names.ready,
    ]);
    if (signal.aborted) return;
    const area = state.area.value;
    batch(() => {
      const view = after(state.view.value);
      if (view === state.view.value && view.t1 < meta.end_ns) state.hasNew.value = true;
      state.about.value = meta;
      state.isLive.value = meta.is_live;
      state.names = names.names;
      state.view.value = view;
      for (const show of shown) show?.();
      state.selected.value = selected;
      state.found.value = found;
      state.toggled.value = keysNow(state.toggled.value, before, meta);
      state.pinned.value = keysNow(state.pinned.value, before, meta);
      if (area !== null)
        state.area.value = { ...area, rows: area.rows.flatMap((row) => numbers.row(row) ?? []) };
      state.fresh.value++;
    });
  }

  /** The same event, whatever its number is now. */
  private async selectedIn(meta: Meta, numbers: Renumbered): Promise<Details | null> {
    const { state, signal } = this;
    const event = state.selected.value?.event;
    const row = event === undefined ? null : numbers.row(event.row);
    if (event === undefined || row === null) return null;
    const middle = Math.floor(event.ts_ns + event.dur_ns / 2);
    const { event: now } = await get<{ event: Brief | null }>(
      ofRun(state.run, 'timeline/at'),
      { index: meta.index, row, t0: middle, t1: middle + 1 },
      { signal },
    );
    if (now?.name !== event.name) return null;
    return get<Details>(
      ofRun(state.run, `timeline/event/${now.id}`),
      { index: meta.index },
      { signal },
    );
  }
}

function renumbered(before: Meta, after: Meta): Renumbered {
  const tracks = new Map(after.tracks.map((track) => [identity(track), track]));
  const curves = new Map(
    after.curves.map((curve, number) => [`${curve.rank} ${curve.name}`, number]),
  );
  return {
    row(row) {
      const track = before.tracks.find(
        (one) => row >= one.first_row && row < one.first_row + one.rows,
      );
      const now = track === undefined ? undefined : tracks.get(identity(track));
      const depth = row - (track?.first_row ?? 0);
      return now === undefined || depth >= now.rows ? null : now.first_row + depth;
    },
    curve(number) {
      const curve = before.curves[number];
      return curve === undefined ? null : (curves.get(`${curve.rank} ${curve.name}`) ?? null);
    },
  };
}

/** Lanes that were opened or pinned; tracks are counted anew in each index. */
function keysNow(keys: ReadonlySet<string>, before: Meta, after: Meta): ReadonlySet<string> {
  if (keys.size === 0) return keys;
  const now = new Map(after.tracks.map((track) => [identity(track), trackKey(track)]));
  const moved = new Map(before.tracks.map((track) => [trackKey(track), now.get(identity(track))]));
  return new Set([...keys].flatMap((key) => (moved.has(key) ? (moved.get(key) ?? []) : key)));
}

function identity(track: Track): string {
  return JSON.stringify([
    track.rank,
    track.device,
    track.name,
    track.process,
    track.thread,
    track.part,
  ]);
}
