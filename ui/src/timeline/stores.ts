/** What was fetched of a timeline, and what to fetch next. Nothing here draws. */

import { Failure, asFailure, get, getBytes, ofRun } from '../api';
import type { Renumbered } from './growth';
import { ranges } from './layout';
import { unpacked, type Packet } from './packet';
import { Strip, type TileAbout } from './strip';
import type { Meta, View } from './types';

/** Fetched on each side of what is seen, in screens: then most moves need nothing new. */
const SKIRT = 1;
/** Fetched again when less than this is left on a side. */
const LEAST_SKIRT = 0.4;
const STRIPS_KEPT = 6;
/** The server counts buckets of a tile in 16 bits. */
const MOST_BUCKETS = 65_000;
export const NAMES_AT_ONCE = 1024;

/** Counts for whoever measures: see benchmarks/web.py. */
export interface Counts {
  requests: number;
  bytes: number;
  frames: number;
  firstPaintMs: number | null;
  fetchMs: number[];
  drawMs: number[];
  blankFrames: number;
  /** What is seen now, to be moved by whoever measures. */
  state: unknown;
}

export const counts: Counts = {
  requests: 0,
  bytes: 0,
  frames: 0,
  firstPaintMs: null,
  fetchMs: [],
  drawMs: [],
  blankFrames: 0,
  state: null,
};
(globalThis as { strobeTimeline?: Counts }).strobeTimeline = counts;
/** Enough for a percentile of the newest. */
const COUNTS_KEPT = 2000;

export function note(list: number[], value: number): void {
  list.push(value);
  if (list.length > COUNTS_KEPT) list.splice(0, COUNTS_KEPT / 2);
}

async function fetched(
  path: string,
  parameters: Readonly<Record<string, string | number>>,
  signal: AbortSignal,
): Promise<ArrayBuffer> {
  const began = performance.now();
  const bytes = await getBytes(path, parameters, { signal });
  counts.requests++;
  counts.bytes += bytes.byteLength;
  note(counts.fetchMs, performance.now() - began);
  return bytes;
}

/** Buckets no narrower than a pixel: finer ones could not be seen. */
export function shiftFor(view: View, width: number, meta: Meta): number {
  const nsPerPixel = (view.t1 - view.t0) / Math.max(1, width);
  return Math.max(0, Math.min(meta.coarsest_shift, Math.ceil(Math.log2(Math.max(1, nsPerPixel)))));
}

/** Something that holds what was fetched of one index, and can fetch it from the next. */
export interface Store {
  /** Fetches what is seen; the function it gives then shows it. */
  renewed(meta: Meta, numbers: Renumbered, after: (view: View) => View): Promise<() => void>;
}

/** Strips of the rows that are in sight; one request at a time, always for what is seen now. */
export class StripStore implements Store {
  private strips: Strip[] = [];
  private isAsking = false;
  private wanted: WantedStrip | null = null;
  private last: WantedStrip | null = null;

  constructor(
    private readonly run: string,
    private meta: Meta,
    private readonly signal: AbortSignal,
    private readonly onChange: (failure: Failure | null) => void,
  ) {}

  /** The strip that shows this row best now, or null if none reaches it. */
  best(row: number, view: View, shift: number): Strip | null {
    let chosen: Strip | null = null;
    let most = 0;
    for (const strip of this.strips) {
      if (!strip.placeOfRow.has(row)) continue;
      const covered =
        (Math.min(view.t1, strip.t1, this.meta.end_ns) -
          Math.max(view.t0, strip.t0, this.meta.begin_ns)) /
        (view.t1 - view.t0);
      // What is as fine as can be seen wins over what is too fine or too coarse.
      const score = covered - 0.08 * Math.abs(strip.shift - shift);
      if (covered > 0 && (chosen === null || score > most)) {
        chosen = strip;
        most = score;
      }
    }
    return chosen;
  }

  async renewed(meta: Meta, numbers: Renumbered, after: (view: View) => View): Promise<() => void> {
    const { last } = this;
    const strip =
      last === null
        ? null
        : await this.ask(meta, {
            ...last,
            view: after(last.view),
            rows: last.rows.flatMap((row) => numbers.row(row) ?? []),
          });
    return () => {
      this.meta = meta;
      this.strips = strip === null ? [] : [strip];
    };
  }

  want(view: View, visible: readonly number[], nearby: readonly number[], width: number): void {
    if (visible.length === 0) return;
    this.last = { view, rows: nearby, width };
    if (this.strips.some((strip) => this.satisfies(strip, view, visible, width))) return;
    this.wanted = { view, rows: nearby, width };
    void this.next();
  }

  private satisfies(strip: Strip, view: View, rows: readonly number[], width: number): boolean {
    if (
      strip.shift !== shiftFor(view, width, this.meta) ||
      !rows.every((row) => strip.placeOfRow.has(row))
    )
      return false;
    const margin = (view.t1 - view.t0) * LEAST_SKIRT;
    const from = Math.max(view.t0 - margin, this.meta.begin_ns);
    const to = Math.min(view.t1 + margin, this.meta.end_ns);
    return from >= to || (strip.t0 <= from && strip.t1 >= to);
  }

  private async next(): Promise<void> {
    if (this.isAsking || this.wanted === null) return;
    const { wanted, meta } = this;
    this.wanted = null;
    this.isAsking = true;
    try {
      const strip = await this.ask(meta, wanted);
      if (strip !== null && meta === this.meta)
        this.strips = [strip, ...this.strips].slice(0, STRIPS_KEPT);
      this.onChange(null);
    } catch (error) {
      if (!this.signal.aborted && meta === this.meta) this.onChange(asFailure(error));
    } finally {
      this.isAsking = false;
    }
    void this.next();
  }

  private async ask(meta: Meta, { view, rows, width }: WantedStrip): Promise<Strip | null> {
    const shift = shiftFor(view, width, meta);
    const bucketNs = 2 ** shift;
    const skirt = (view.t1 - view.t0) * SKIRT;
    const { begin_ns: origin, end_ns: end, index } = meta;
    const first = Math.max(0, Math.floor((view.t0 - skirt - origin) / bucketNs));
    const past = Math.floor((end - origin) / bucketNs) + 1;
    const last = Math.min(
      past,
      Math.ceil((view.t1 + skirt - origin) / bucketNs),
      first + MOST_BUCKETS,
    );
    if (last <= first || rows.length === 0) return null;
    const bytes = await fetched(
      ofRun(this.run, 'timeline/tiles'),
      { index, shift, first, last, rows: ranges(rows) },
      this.signal,
    );
    return new Strip(unpacked<TileAbout>(bytes), rows, origin);
  }
}

interface WantedStrip {
  readonly view: View;
  readonly rows: readonly number[];
  readonly width: number;
}

interface CurvesAbout {
  readonly t0: number;
  readonly t1: number;
  readonly buckets: number;
  readonly before: Readonly<Record<string, number | null>>;
}

export interface DrawnCurve {
  readonly t0: number;
  readonly t1: number;
  readonly buckets: number;
  readonly before: number | null;
  readonly bucket: Uint16Array;
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly last: Float64Array;
}

/** Curves of what is seen, in the same manner. */
export class CurveStore implements Store {
  private packet: Packet<CurvesAbout> | null = null;
  private isAsking = false;
  private wanted: WantedCurves | null = null;
  private last: WantedCurves | null = null;

  constructor(
    private readonly run: string,
    private meta: Meta,
    private readonly signal: AbortSignal,
    private readonly onChange: (failure: Failure | null) => void,
  ) {}

  curve(number: number): DrawnCurve | null {
    const { packet } = this;
    const bucket = packet?.columns[`${number}/bucket`];
    if (packet === null || bucket === undefined) return null;
    const { t0, t1, buckets, before } = packet.about;
    return {
      t0,
      t1,
      buckets,
      before: before[String(number)] ?? null,
      bucket: bucket as Uint16Array,
      low: packet.columns[`${number}/low`] as Float64Array,
      high: packet.columns[`${number}/high`] as Float64Array,
      last: packet.columns[`${number}/last`] as Float64Array,
    };
  }

  async renewed(
    meta: Meta,
    { curve }: Renumbered,
    after: (view: View) => View,
  ): Promise<() => void> {
    const { last } = this;
    const packet =
      last === null
        ? null
        : await this.ask(meta, {
            ...last,
            view: after(last.view),
            numbers: last.numbers.flatMap((number) => curve(number) ?? []),
          });
    return () => {
      this.meta = meta;
      this.packet = packet;
    };
  }

  want(view: View, numbers: readonly number[], width: number): void {
    if (numbers.length > 0) this.last = { view, numbers, width };
    if (numbers.length === 0 || this.satisfies(view, numbers)) return;
    this.wanted = { view, numbers, width };
    void this.next();
  }

  private satisfies(view: View, numbers: readonly number[]): boolean {
    const { packet } = this;
    if (packet === null || !numbers.every((number) => `${number}/bucket` in packet.columns))
      return false;
    const { t0, t1 } = packet.about;
    const span = view.t1 - view.t0;
    const isAsFine = (t1 - t0) / span < 4.5 && (t1 - t0) / span > 1.5;
    return isAsFine && t0 <= view.t0 - span * 0.1 && t1 >= view.t1 + span * 0.1;
  }

  private async next(): Promise<void> {
    if (this.isAsking || this.wanted === null) return;
    const { wanted, meta } = this;
    this.wanted = null;
    this.isAsking = true;
    try {
      const packet = await this.ask(meta, wanted);
      if (meta === this.meta) this.packet = packet;
      this.onChange(null);
    } catch (error) {
      if (!this.signal.aborted && meta === this.meta) this.onChange(asFailure(error));
    } finally {
      this.isAsking = false;
    }
    void this.next();
  }

  private async ask(
    { index }: Meta,
    { view, numbers, width }: WantedCurves,
  ): Promise<Packet<CurvesAbout>> {
    const span = view.t1 - view.t0;
    const t0 = Math.floor(view.t0 - span * SKIRT);
    const t1 = Math.ceil(view.t1 + span * SKIRT);
    const buckets = Math.min(16_000, Math.ceil(width * (1 + 2 * SKIRT)));
    return unpacked<CurvesAbout>(
      await fetched(
        ofRun(this.run, 'timeline/curves'),
        { index, curves: ranges(numbers), t0, t1, buckets },
        this.signal,
      ),
    );
  }
}

interface WantedCurves {
  readonly view: View;
  readonly numbers: readonly number[];
  readonly width: number;
}

/** Names by their numbers, fetched some at a time when they are first needed. */
export class Names {
  private readonly pages = new Map<number, readonly (readonly [string, string])[] | null>();

  constructor(
    private readonly run: string,
    private readonly index: string,
    private readonly signal: AbortSignal,
    private readonly onChange: () => void,
  ) {}

  /** Those of the next index; they are ready once as many are there as here, so that no label blinks. */
  renewed(index: string): { readonly names: Names; readonly ready: Promise<void> } {
    const names = new Names(this.run, index, this.signal, this.onChange);
    return {
      names,
      ready: Promise.all([...this.pages.keys()].map((number) => names.fetch(number))).then(
        () => undefined,
      ),
    };
  }

  /** Null while it is on its way. */
  name(code: number): string | null {
    return this.entry(code)?.[0] ?? null;
  }

  kind(code: number): string | null {
    return this.entry(code)?.[1] ?? null;
  }

  private entry(code: number): readonly [string, string] | null {
    const number = Math.floor(code / NAMES_AT_ONCE);
    const page = this.pages.get(number);
    if (page === undefined) void this.fetch(number);
    return page?.[code % NAMES_AT_ONCE] ?? null;
  }

  private async fetch(number: number): Promise<void> {
    this.pages.set(number, null);
    try {
      const { names } = await get<{ names: readonly (readonly [string, string])[] }>(
        ofRun(this.run, 'timeline/names'),
        { index: this.index, first: number * NAMES_AT_ONCE },
        { signal: this.signal },
      );
      this.pages.set(number, names);
      this.onChange();
    } catch {
      // Asked again with the next frame that needs it; what fails is told by the tiles.
      this.pages.delete(number);
    }
  }
}
