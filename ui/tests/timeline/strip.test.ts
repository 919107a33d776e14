import { describe, expect, test } from 'vitest';
import { packed, unpacked } from '../../src/timeline/packet';
import { COLOUR_BITS, FULL, Strip, type TileAbout } from '../../src/timeline/strip';

type Entry = readonly [x: number, width: number, busy: number, begun: number, paint: number];

/** Buckets of 8 ns from 1000 ns on. */
function strip(rows: readonly number[], entries: readonly (readonly Entry[])[]): Strip {
  const all = entries.flat();
  const tile = packed(
    { shift: 3, first: 0, buckets: 100 },
    {
      count_of_row: Uint32Array.from(entries, (row) => row.length),
      x: Uint16Array.from(all, (one) => one[0]),
      width: Uint16Array.from(all, (one) => one[1]),
      busy: Uint8Array.from(all, (one) => one[2]),
      begun: Uint8Array.from(all, (one) => one[3]),
      paint: Uint32Array.from(all, (one) => one[4] << COLOUR_BITS),
    },
  );
  return new Strip(unpacked<TileAbout>(tile), rows, 1000);
}

describe('a strip', () => {
  const one = strip(
    [5, 9],
    [
      [
        [2, 1, FULL, 1, 1],
        [3, 20, FULL, 0, 1],
        [40, 1, 51, 9, 2],
      ],
      [[0, 100, FULL, 0, 3]],
    ],
  );

  test('reaches from its first bucket to its last', () => {
    expect([one.t0, one.t1]).toEqual([1000, 1800]);
  });

  test('finds what is drawn at a moment', () => {
    expect(one.entryAt(5, 1016)).toMatchObject({ x: 2, count: 1 });
    expect(one.entryAt(5, 1024 + 20 * 8 - 1)).toMatchObject({ x: 3, width: 20, count: 0 });
    expect(one.entryAt(5, 1024 + 20 * 8)).toBeNull();
    expect(one.entryAt(5, 1000)).toBeNull();
    expect(one.entryAt(7, 1016)).toBeNull();
  });

  test('reads counts that were written as powers of two', () => {
    expect(one.entryAt(5, 1320)?.count).toBe(2);
  });

  test('adds up how busy a row is, in what is seen of it', () => {
    expect(one.busyShare(9, 1000, 1800)).toBe(1);
    expect(one.busyShare(5, 1000, 1800)).toBeCloseTo((21 * 8 + 8 * 0.2) / 800, 9);
    expect(one.busyShare(5, 1020, 1028)).toBeCloseTo(1, 9);
    expect(one.busyShare(5, 0, 500)).toBeNull();
    expect(one.busyShare(7, 1000, 1800)).toBeNull();
  });

  test('knows where events begin, the one that goes on into the view first', () => {
    const starts = one.starts(5, { t0: 1100, t1: 1800 });
    expect(starts.map((start) => start.moment)).toEqual([1016, 1320]);
    expect(starts.map((start) => start.paint >>> COLOUR_BITS)).toEqual([1, 2]);
  });

  test('has labels only where there is room', () => {
    expect(one.labels).toEqual([[1], [3]]);
  });
});
