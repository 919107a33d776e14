import { describe, expect, test } from 'vitest';
import * as lanes from '../../src/timeline/layout';
import { curve, meta, track } from './drawings';

const NOTHING: lanes.Choice = { toggled: new Set(), pinned: new Set(), filter: '' };
const keys = (found: readonly lanes.Lane[]) => found.map((lane) => lane.key);

describe('layout', () => {
  const two = meta(
    [track(1, 0, 3), track(2, 3, 2, { rank: 1, device: 'cuda:0', name: 'stream 7' })],
    [curve(0, 'memory')],
  );

  test('a rank has its tracks and curves below it, one under the other', () => {
    const { lanes: found, pinned } = lanes.layout(two, NOTHING);
    expect(keys(found)).toEqual(['r0', 't1', 'c0', 'v0.memory', 'r1', 't2']);
    expect(pinned).toEqual([]);
    found.slice(1).forEach((lane, at) => {
      const above = found[at]!;
      expect(lane.y).toBeGreaterThanOrEqual(above.y + above.height);
    });
    expect(lanes.heightOf(found)).toBeGreaterThan(found.at(-1)!.y);
  });

  test('a closed rank says how many tracks it hides', () => {
    const { lanes: found } = lanes.layout(two, { ...NOTHING, toggled: new Set(['r0']) });
    expect(keys(found)).toEqual(['r0', 'r1', 't2']);
    expect(found[0]).toMatchObject({ kind: 'rank', isOpen: false, hidden: 1 });
  });

  test('a pinned lane stays in sight when its rank is closed', () => {
    const { lanes: found, pinned } = lanes.layout(two, {
      ...NOTHING,
      toggled: new Set(['r1']),
      pinned: new Set(['t2']),
    });
    expect(keys(pinned)).toEqual(['t2']);
    expect(pinned[0]?.y).toBe(0);
    expect(keys(found)).not.toContain('t2');
  });

  test('a filter finds all of its words, in any case, and opens what it finds', () => {
    const { lanes: found } = lanes.layout(two, {
      ...NOTHING,
      toggled: new Set(['r1']),
      filter: 'STREAM rank',
    });
    expect(keys(found)).toEqual(['r1', 't2']);
  });

  test('ranks beyond the fourth begin closed', () => {
    const many = meta(Array.from({ length: 6 }, (_, rank) => track(rank, rank, 1, { rank })));
    const heads = lanes.layout(many, NOTHING).lanes.filter((lane) => lane.kind === 'rank');
    expect(heads.map((lane) => lane.kind === 'rank' && lane.isOpen)).toEqual([
      true,
      true,
      true,
      true,
      false,
      false,
    ]);
  });

  test('deep tracks and Python frames begin closed', () => {
    const deep = meta([track(1, 0, 30), track(2, 30, 5, { part: 'python' })]);
    const [, first, second] = lanes.layout(deep, NOTHING).lanes;
    expect(first).toMatchObject({ shownRows: 8, isOpen: false });
    expect(second).toMatchObject({ shownRows: 1, isOpen: false });
    const opened = lanes.layout(deep, { ...NOTHING, toggled: new Set(['t1']) }).lanes[1];
    expect(opened).toMatchObject({ shownRows: 30, isOpen: true });
  });
});

describe('what is at a height', () => {
  const found = lanes.layout(meta([track(1, 10, 3), track(2, 13, 2)]), NOTHING).lanes;
  const first = found[1]!;
  const second = found[2]!;

  test('a lane, or nothing between two', () => {
    expect(lanes.laneAt(found, first.y)?.key).toBe('t1');
    expect(lanes.laneAt(found, first.y + first.height - 1)?.key).toBe('t1');
    expect(lanes.laneAt(found, first.y + first.height)).toBeNull();
    expect(lanes.laneAt(found, 1e6)).toBeNull();
    expect(lanes.laneAt([], 0)).toBeNull();
  });

  test('a row of its track', () => {
    expect(lanes.rowAt(first, first.y + lanes.ROW_HEIGHT)).toBe(11);
    expect(lanes.rowAt(first, first.y + first.height)).toBeNull();
    expect(lanes.rowAt(found[0]!, 0)).toBeNull();
  });

  test('the lanes that touch a stretch', () => {
    expect(keys(lanes.lanesIn(found, first.y + 1, second.y))).toEqual(['t1']);
    expect(keys(lanes.lanesIn(found, first.y + 1, second.y + 1))).toEqual(['t1', 't2']);
  });
});

test('rows know their track, and what must be open to see them', () => {
  const one = meta([track(1, 0, 3), track(2, 3, 2, { rank: 5 })]);
  expect(lanes.trackOf(one, 4)?.id).toBe(2);
  expect(lanes.keysAbove(one, 4)).toEqual({ track: 't2', rank: 'r5', depth: 1 });
  expect(lanes.keysAbove(one, 5)).toBeNull();
});

test('rows are written as ranges and read again', () => {
  const rows = [0, 1, 2, 3, 17, 20, 21];
  expect(lanes.ranges(rows)).toBe('0-3,17,20-21');
  expect(lanes.rowsFrom('0-3,17,20-21')).toEqual(rows);
  expect(lanes.ranges([])).toBe('');
  expect(lanes.rowsFrom('')).toEqual([]);
});
