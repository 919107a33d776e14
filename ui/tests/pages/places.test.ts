import { beforeEach, expect, test } from 'vitest';
import { placeOf, placesOf } from '../../src/pages/overview/places';
import { go, parse } from '../../src/router';

beforeEach(() => go('#/run/demo/overview'));

const where = (table: string, row: Parameters<typeof placeOf>[2]) => {
  const place = placeOf('demo', table, row);
  if (place === null) return null;
  const { page, query } = parse(place.href);
  return { page, query };
};

test('an event of a step is shown with its step', () => {
  expect(where('events', { id: 7, step: 3, rank: 1, ts_ns: 5, dur_ns: 1 })).toEqual({
    page: 'timeline',
    query: { sel: '7', step: '3', rank: '1' },
  });
});

test('an event outside of steps is shown with its surroundings, from the begin of the run on', () => {
  expect(where('events', { id: 7, step: null, ts_ns: 1000, dur_ns: 1000 })).toEqual({
    page: 'timeline',
    query: { t0: '0', t1: '10000', sel: '7' },
  });
});

test('other rows lead to the page that shows such rows', () => {
  expect(where('steps', { step: 4 })).toEqual({ page: 'steps', query: { step: '4' } });
  expect(where('kernels', { name: 'gemm' })).toEqual({
    page: 'operators',
    query: { tab: 'kernels', op: 'gemm' },
  });
  expect(where('operators', { name: 'aten::mm' })?.query['ops.where']).toBe('name:eq:aten::mm');
  expect(where('counters', {})?.page).toBe('memory');
  expect(where('data-steps', {})?.page).toBe('pipeline');
  expect(where('samples', { ts_ns: 5_000 })?.page).toBe('timeline');
  expect(where('samples', {})).toBeNull();
});

test('each place is named once', () => {
  const rows = [{ step: 1 }, { step: 1 }, { step: 2 }];
  expect(placesOf('demo', { table: 'steps', rows }).length).toBe(2);
});
