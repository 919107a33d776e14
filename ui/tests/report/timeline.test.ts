import { describe, expect, test } from 'vitest';
import { HeldTimeline, type HeldAbout } from '../../src/report/timeline';
import { packed, unpacked, type Packet } from '../../src/timeline/packet';
import type { Brief, Details, Found, Meta } from '../../src/timeline/types';
import { track } from '../timeline/drawings';

const NONE = 2 ** 32 - 1;

/**
 * From 1000 ns on. Row 0: step 1 (0..100), step 2 (100..300). Row 1: forward (10..90). Row 2, below
 * it: mm (20..40), add (50..60).
 */
function held(): HeldTimeline {
  const about: HeldAbout = {
    begin_ns: 1000,
    end_ns: 1300,
    events_in_run: 5,
    stretches: [],
    tracks: [track(1, 0, 1, { device: 'steps' }), track(2, 0, 2)],
    names: [
      ['step 1', 'step'],
      ['step 2', 'step'],
      ['forward', 'annotation'],
      ['aten::mm', 'op'],
      ['aten::add', 'op'],
    ],
    kinds: [],
    curves: [{ rank: 0, name: 'cores', values: 3, lowest: 1, highest: 3 }],
    flow_kinds: ['launch'],
    colours: { by_name: 240, fixed: [] },
  };
  const columns = {
    row_at: Uint32Array.of(0, 2, 3, 5),
    start_ns: Float64Array.of(0, 100, 10, 20, 50),
    dur_ns: Float64Array.of(100, 200, 80, 20, 10),
    self_ns: Float64Array.of(100, 200, 50, 20, 10),
    id: Float64Array.of(11, 12, 13, 14, 15),
    name: Uint32Array.of(0, 1, 2, 3, 4),
    parent: Uint32Array.of(NONE, NONE, NONE, 2, 2),
    paint: Uint32Array.of(0, 0, 0, 0, 0),
    cause: Uint32Array.of(3),
    effect: Uint32Array.of(4),
    flow_kind: Uint8Array.of(0),
    curve_at: Uint32Array.of(0, 3),
    curve_ns: Float64Array.of(1010, 1110, 1120),
    curve_value: Float64Array.of(1, 3, 2),
  };
  return new HeldTimeline(unpacked<HeldAbout>(packed(about, columns)));
}

function ask<T>(path: string, asked: Record<string, string | number> = {}): T {
  const search = new URLSearchParams(
    Object.entries(asked).map(([key, value]) => [key, String(value)]),
  );
  return held().answer(path.split('/').filter(Boolean), search) as T;
}

test('rows of tracks follow each other', () => {
  const meta = ask<Meta>('');
  expect(meta.tracks.map((one) => [one.first_row, one.rows, one.events])).toEqual([
    [0, 1, 2],
    [1, 2, 3],
  ]);
  expect(held().isWhole).toBe(true);
});

test('the event at a moment is the longest there', () => {
  const at = (row: number, t0: number, t1: number) =>
    ask<{ event: Brief | null }>('at', { row, t0, t1 }).event?.name ?? null;
  expect(at(0, 1099, 1100)).toBe('step 1');
  expect(at(0, 1100, 1101)).toBe('step 2');
  expect(at(2, 1000, 1300)).toBe('aten::mm');
  expect(at(2, 1045, 1046)).toBeNull();
});

test('an event knows what is around, next to and inside of it, and what it caused', () => {
  const forward = ask<Details>('event/13');
  expect(forward.first_inside?.name).toBe('aten::mm');
  expect(forward.effects.map((flow) => [flow.name, flow.flow])).toEqual([['aten::add', 'launch']]);
  const mm = ask<Details>('event/14');
  expect(mm.around.map((one) => one.name)).toEqual(['forward']);
  expect([mm.previous?.name, mm.next?.name]).toEqual([undefined, 'aten::add']);
  expect(ask<Details | null>('event/99')).toBeNull();
});

describe('a search', () => {
  test('finds names that have all words, of a kind if one is given', () => {
    const found = ask<Found>('search', { q: 'ATEN kind:op' });
    expect(found.names.map((one) => [one.name, one.count, one.total_ns])).toEqual([
      ['aten::mm', 1, 20],
      ['aten::add', 1, 10],
    ]);
    expect(found.density.reduce((sum, one) => sum + one, 0)).toBe(found.total);
    expect(ask<Found>('search', { q: 'aten kind:step' }).total).toBe(0);
  });

  test('goes from hit to hit, and round at the end', () => {
    const go = (way: string, position: number) => {
      const hit = ask<{ event: Brief; number: number; total: number }>('search', {
        q: 'aten',
        way,
        position,
      });
      return [hit.event.name, hit.number, hit.total];
    };
    expect(go('next', 3)).toEqual(['aten::add', 2, 2]);
    expect(go('next', 4)).toEqual(['aten::mm', 1, 2]);
    expect(go('previous', 3)).toEqual(['aten::add', 2, 2]);
  });
});

test('times of an area are cut to it, and self time is without what is inside', () => {
  const area = ask<{ rows: unknown[][]; busy_ns: Record<string, number>; span_ns: number }>(
    'area',
    { rows: '1-2', t0: 1030, t1: 1055 },
  );
  expect(area.busy_ns).toEqual({ 1: 25, 2: 15 });
  expect(area.span_ns).toBe(25);
  expect(area.rows.map(([name, , count, total, self]) => [name, count, total, self])).toEqual([
    ['forward', 1, 25, 10],
    ['aten::mm', 1, 10, 10],
    ['aten::add', 1, 5, 5],
  ]);
});

test('a curve has the values of each bucket, and the one before', () => {
  const { about, columns } = unpacked(
    ask<ArrayBuffer>('curves', { curves: '0', t0: 1100, t1: 1200, buckets: 2 }),
  ) as Packet<{ before: Record<string, number | null> }>;
  expect(about.before).toEqual({ 0: 1 });
  expect(columns['0/bucket']).toEqual(Uint16Array.of(0));
  expect(columns['0/low']).toEqual(Float64Array.of(2));
  expect(columns['0/high']).toEqual(Float64Array.of(3));
  expect(columns['0/last']).toEqual(Float64Array.of(2));
});

test('steps have the stretch of time from the first to the last', () => {
  expect(ask('steps', { steps: '2:2' })).toEqual({ t0: 1100, t1: 1300 });
  expect(ask('steps', { steps: ':' })).toEqual({ t0: 1000, t1: 1300 });
  expect(ask('steps', { steps: '7:9' })).toBeNull();
});

test('tiles have a single event as one entry, and short ones by their bucket', () => {
  const { columns } = unpacked(
    ask<ArrayBuffer>('tiles', { rows: '0,2', shift: 5, first: 0, last: 10 }),
  );
  expect(columns['count_of_row']).toEqual(Uint32Array.of(5, 2));
  // Bucket 3 (96..128) has the end of step 1 and the begin of step 2: it is full.
  expect([...columns['x']!].slice(0, 4)).toEqual([0, 1, 3, 4]);
  expect([...columns['width']!].slice(0, 4)).toEqual([1, 2, 1, 5]);
  expect([...columns['busy']!].slice(0, 4)).toEqual([255, 255, 255, 255]);
});
