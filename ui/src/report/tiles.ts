/** What to draw of some rows between two buckets of time: as strobe/timeline/tiles.py, event by event. */

import { packed } from '../timeline/packet';
import { COUNT_STEPS, FULL } from '../timeline/strip';
import type { HeldTimeline } from './timeline';

interface Entries {
  readonly paint: number[];
  readonly x: number[];
  readonly width: number[];
  readonly busy: number[];
  readonly begun: number[];
}

export function tile(
  held: HeldTimeline,
  rows: readonly number[],
  shift: number,
  first: number,
  last: number,
): ArrayBuffer {
  const entries: Entries = { paint: [], x: [], width: [], busy: [], begun: [] };
  const counts = rows.map((row) => {
    const before = entries.x.length;
    addRow(held, row, 2 ** shift, first, last, entries);
    return entries.x.length - before;
  });
  return packed(
    { shift, first, buckets: last - first },
    {
      count_of_row: Uint32Array.from(counts),
      paint: Uint32Array.from(entries.paint),
      x: Uint16Array.from(entries.x),
      width: Uint16Array.from(entries.width),
      busy: Uint8Array.from(entries.busy),
      begun: Uint8Array.from(entries.begun),
    },
  );
}

/** A bucket in which an event begins or ends tells how much of it is covered; between the two, one entry is the event. */
function addRow(
  held: HeldTimeline,
  row: number,
  bucketNs: number,
  first: number,
  last: number,
  to: Entries,
): void {
  let [bucket, cover, longest, paint, begun] = [-1, 0, -1, 0, 0];
  const put = (from: number, until: number, busy: number, colour: number, count: number) => {
    const [x, end] = [Math.max(from, first), Math.min(until, last)];
    if (end <= x) return;
    to.x.push(x - first);
    to.width.push(end - x);
    to.busy.push(busy);
    to.paint.push(colour);
    to.begun.push(count);
  };
  const flush = () => {
    if (longest < 0) return;
    put(
      bucket,
      bucket + 1,
      Math.round((cover * FULL) / bucketNs),
      paint,
      begun > 0 ? Math.round(1 + COUNT_STEPS * Math.log2(begun)) : 0,
    );
  };
  const add = (where: number, covered: number, length: number, colour: number, count: number) => {
    if (where !== bucket || longest < 0) {
      flush();
      [bucket, cover, longest, paint, begun] = [where, 0, -1, 0, 0];
    }
    cover += covered;
    begun += count;
    if (length > longest) [longest, paint] = [length, colour];
  };
  const [from, until] = held.touching(row, first * bucketNs, last * bucketNs);
  for (let at = from; at < until; at++) {
    const start = held.start[at] ?? 0;
    const length = held.length[at] ?? 0;
    const end = start + length;
    const colour = held.paint[held.name[at] ?? 0] ?? 0;
    const head = Math.floor(start / bucketNs);
    const tail = Math.floor(Math.max(end - 1, start) / bucketNs);
    add(head, Math.min(end, (head + 1) * bucketNs) - start, length, colour, 1);
    if (tail === head) continue;
    if (tail > head + 1) {
      flush();
      longest = -1;
      put(head + 1, tail, FULL, colour, 0);
    }
    add(tail, end - tail * bucketNs, length, colour, 0);
  }
  flush();
}
