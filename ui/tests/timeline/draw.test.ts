import { describe, expect, test } from 'vitest';
import { curveValue, fitted, valueAt, xOf } from '../../src/timeline/draw';
import { shiftFor, type DrawnCurve } from '../../src/timeline/stores';
import { meta } from './drawings';

test('a moment is where its part of the view is', () => {
  expect(xOf(150, { t0: 100, t1: 300 }, 800)).toBe(200);
  expect(xOf(50, { t0: 100, t1: 300 }, 800)).toBe(-200);
});

test('buckets are no narrower than a pixel, and no coarser than the coarsest', () => {
  const one = meta([]);
  expect(shiftFor({ t0: 0, t1: 1000 }, 1000, one)).toBe(0);
  expect(shiftFor({ t0: 0, t1: 8000 }, 1000, one)).toBe(3);
  expect(shiftFor({ t0: 0, t1: 8001 }, 1000, one)).toBe(4);
  expect(shiftFor({ t0: 0, t1: 1e15 }, 1000, one)).toBe(one.coarsest_shift);
  expect(shiftFor({ t0: 0, t1: 100 }, 0, one)).toBe(7);
});

describe('a curve', () => {
  const curve: DrawnCurve = {
    t0: 0,
    t1: 100,
    buckets: 10,
    before: 7,
    bucket: Uint16Array.of(2, 5),
    low: Float64Array.of(1, 4),
    high: Float64Array.of(3, 6),
    last: Float64Array.of(2, 5),
  };

  test('has the value that was last, until the next one', () => {
    expect([0, 19, 20, 49, 50, 99].map((moment) => valueAt(curve, moment))).toEqual([
      7, 7, 2, 2, 5, 5,
    ]);
    expect(valueAt({ ...curve, before: null }, 10)).toBeNull();
  });

  test('has the unit that ends its name', () => {
    expect(curveValue('device memory_bytes', 2048)).toBe('2.00 KiB');
    expect(curveValue('read_bytes per second', 2048)).toBe('2.00 KiB/s');
    expect(curveValue('gc_ns_total per second', 1_500_000)).toBe('1.50 ms/s');
    expect(curveValue('busy_ratio', 0.25)).toBe('25%');
    expect(curveValue('cores', 1.2345)).toBe('1.23');
    expect(curveValue('queue', 1234.6)).toBe('1,235');
  });
});

test('a name is cut to its room, a step to its number first', () => {
  expect(fitted('aten::mm', 8)).toBe('aten::mm');
  expect(fitted('aten::addmm', 8)).toBe('aten::a…');
  expect(fitted('step 12', 3)).toBe('12');
  expect(fitted('aten::mm', 1)).toBe('');
});
