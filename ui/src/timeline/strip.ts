/** Tiles as images: one pixel for each bucket of time of each row, drawn stretched in every frame. */

import type { Packet } from './packet';
import type { Palette } from './palette';
import type { View } from './types';

export interface TileAbout {
  readonly shift: number;
  readonly first: number;
  readonly buckets: number;
}

/** Paint holds the number of a name above its colour: strobe/timeline/colours.py. */
export const COLOUR_BITS = 8;
const COLOUR_MASK = (1 << COLOUR_BITS) - 1;
/** The part of a bucket that is covered, in these steps: strobe/timeline/pyramid.py. */
export const FULL = 255;
/** A count as a byte: 0 for none, else 1 + this many for each doubling. */
export const COUNT_STEPS = 8;
/** So that a single short event is seen at all; the rest of the strength is how busy a bucket is. */
const FAINTEST = 60;
/** How visible events are that a search has not found. */
const NOT_FOUND = 0.16;
/** Wide events whose names may be written; narrower ones never have the room. */
const LABEL_BUCKETS = 10;

export interface Entry {
  readonly paint: number;
  /** Events that begin in the bucket; 0 inside of one long event. */
  readonly count: number;
  readonly x: number;
  readonly width: number;
}

export class Strip {
  /** Where each row begins among the entries. */
  readonly at: Uint32Array;
  readonly paint: Uint32Array;
  readonly x: Uint16Array;
  readonly width: Uint16Array;
  readonly busy: Uint8Array;
  readonly count: Uint8Array;
  readonly image: OffscreenCanvas;
  readonly placeOfRow = new Map<number, number>();
  readonly bucketNs: number;
  readonly t0: number;
  readonly t1: number;
  /** Entries wide enough for a label, by row. */
  readonly labels: readonly (readonly number[])[];
  private painted: unknown = null;

  constructor(
    tile: Packet<TileAbout>,
    readonly rows: readonly number[],
    origin: number,
  ) {
    const { about, columns } = tile;
    this.paint = columns['paint'] as Uint32Array;
    this.x = columns['x'] as Uint16Array;
    this.width = columns['width'] as Uint16Array;
    this.busy = columns['busy'] as Uint8Array;
    this.count = columns['begun'] as Uint8Array;
    const counts = columns['count_of_row'] as Uint32Array;
    this.at = new Uint32Array(counts.length + 1);
    counts.forEach((count, row) => {
      this.at[row + 1] = (this.at[row] ?? 0) + count;
    });
    rows.forEach((row, place) => this.placeOfRow.set(row, place));
    this.bucketNs = 2 ** about.shift;
    this.t0 = origin + about.first * this.bucketNs;
    this.t1 = this.t0 + about.buckets * this.bucketNs;
    this.buckets = about.buckets;
    this.shift = about.shift;
    this.image = new OffscreenCanvas(Math.max(1, about.buckets), Math.max(1, rows.length));
    this.labels = rows.map((_, place) => this.wide(place));
  }

  readonly buckets: number;
  readonly shift: number;

  /** Puts paint on the image, unless it lies there already. `found`: names to keep bright, or null for all. */
  draw(palette: Palette, found: ReadonlySet<number> | null): void {
    const wanted = found ?? palette;
    if (this.painted === wanted && this.paintedWith === palette) return;
    this.painted = wanted;
    this.paintedWith = palette;
    const { buckets, rows, at, x, width, busy, count, paint } = this;
    const image = new ImageData(Math.max(1, buckets), Math.max(1, rows.length));
    const pixels = new Uint32Array(image.data.buffer);
    for (let row = 0; row < rows.length; row++) {
      const base = row * buckets;
      for (let entry = at[row] ?? 0, end = at[row + 1] ?? 0; entry < end; entry++) {
        const first = base + (x[entry] ?? 0);
        const name = paint[entry] ?? 0;
        const dim = found === null || found.has(name >>> COLOUR_BITS) ? 1 : NOT_FOUND;
        const colour = palette.pixels[name & COLOUR_MASK] ?? 0;
        const wide = width[entry] ?? 0;
        if (wide > 1 || busy[entry] === FULL) {
          pixels.fill(faded(colour, dim * FULL), first, first + wide);
          // A line where a long event begins, or two neighbours of one name would look like one.
          if (
            wide > 2 &&
            entry > 0 &&
            (count[entry - 1] ?? 0) > 0 &&
            (x[entry - 1] ?? 0) === (x[entry] ?? 0) - 1
          ) {
            pixels[first - 1] = faded(palette.edges[name & COLOUR_MASK] ?? 0, dim * FULL);
          }
        } else {
          pixels[first] = faded(
            colour,
            dim * (FAINTEST + ((FULL - FAINTEST) * (busy[entry] ?? 0)) / FULL),
          );
        }
      }
    }
    this.image.getContext('2d')?.putImageData(image, 0, 0);
  }

  private paintedWith: Palette | null = null;

  /** What is drawn of a row at a moment. */
  entryAt(row: number, moment: number): Entry | null {
    const place = this.placeOfRow.get(row);
    if (place === undefined) return null;
    const bucket = Math.floor((moment - this.t0) / this.bucketNs);
    let low = this.at[place] ?? 0;
    let high = this.at[place + 1] ?? 0;
    const end = high;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.x[middle] ?? 0) + (this.width[middle] ?? 0) <= bucket) low = middle + 1;
      else high = middle;
    }
    if (low >= end || (this.x[low] ?? 0) > bucket) return null;
    const count = this.count[low] ?? 0;
    return {
      paint: this.paint[low] ?? 0,
      count: count === 0 ? 0 : Math.round(2 ** ((count - 1) / COUNT_STEPS)),
      x: this.x[low] ?? 0,
      width: this.width[low] ?? 0,
    };
  }

  /** The part of a stretch of time in which a row is busy; null where the strip does not reach. */
  busyShare(row: number, t0: number, t1: number): number | null {
    const place = this.placeOfRow.get(row);
    if (place === undefined) return null;
    const from = Math.max(t0, this.t0);
    const to = Math.min(t1, this.t1);
    if (to <= from) return null;
    let busy = 0;
    for (let entry = this.at[place] ?? 0, end = this.at[place + 1] ?? 0; entry < end; entry++) {
      const begin = this.t0 + (this.x[entry] ?? 0) * this.bucketNs;
      const length = (this.width[entry] ?? 0) * this.bucketNs;
      const seen = Math.min(begin + length, to) - Math.max(begin, from);
      if (seen > 0) busy += seen * ((this.busy[entry] ?? 0) / FULL);
    }
    return busy / (to - from);
  }

  /** Where events of a row begin, of those that touch a stretch of time. */
  starts(row: number, view: View): { readonly moment: number; readonly paint: number }[] {
    const place = this.placeOfRow.get(row);
    if (place === undefined) return [];
    const found: { moment: number; paint: number }[] = [];
    let before: { moment: number; paint: number } | null = null;
    for (let entry = this.at[place] ?? 0, end = this.at[place + 1] ?? 0; entry < end; entry++) {
      if ((this.count[entry] ?? 0) === 0) continue;
      const moment = this.t0 + (this.x[entry] ?? 0) * this.bucketNs;
      if (moment > view.t1) break;
      // The bucket may hold the end of one event and the begin of the next, which then goes on.
      const goesOn = entry + 1 < end && (this.x[entry + 1] ?? 0) === (this.x[entry] ?? 0) + 1;
      const next = { moment, paint: this.paint[goesOn ? entry + 1 : entry] ?? 0 };
      if (moment < view.t0) before = next;
      else found.push(next);
    }
    return before === null ? found : [before, ...found];
  }

  private wide(place: number): number[] {
    const found: number[] = [];
    for (let entry = this.at[place] ?? 0, end = this.at[place + 1] ?? 0; entry < end; entry++) {
      if ((this.width[entry] ?? 0) >= LABEL_BUCKETS) found.push(entry);
    }
    return found;
  }
}

function faded(colour: number, alpha: number): number {
  return ((colour & 0xffffff) | (Math.round(alpha) << 24)) >>> 0;
}
