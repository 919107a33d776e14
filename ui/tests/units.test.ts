import { describe, expect, test } from 'vitest';
import * as units from '../src/units';

describe('duration', () => {
  test.each([
    [0, '0 ns'],
    [999, '999 ns'],
    [1234, '1.23 µs'],
    [999_499, '999 µs'],
    [999_500, '1.00 ms'],
    [24_800_000, '24.8 ms'],
    [119e9, '119 s'],
    [120e9, '2.00 min'],
    [2 * 3600e9, '2.00 h'],
    [-1_500_000, '-1.50 ms'],
  ])('%d ns reads as %s', (ns, text) => expect(units.duration(ns)).toBe(text));

  test('a time that is not known has a sign of its own', () => {
    expect(units.duration(null)).toBe(units.UNKNOWN);
    expect(units.duration(undefined)).toBe(units.UNKNOWN);
  });
});

test('a difference has its sign, and none is neither', () => {
  expect(units.difference(1_200_000)).toBe('+1.20 ms');
  expect(units.difference(-3000)).toBe('−3.00 µs');
  expect(units.difference(0)).toBe('±0');
  expect(units.difference(null)).toBe(units.UNKNOWN);
});

test('a moment has its microseconds, and commas in its seconds only', () => {
  expect(units.moment(12_345_678_000)).toBe('12.345678 s');
  expect(units.moment(1234_567_891_234_000)).toBe('1,234,567.891234 s');
});

test('sizes are binary, rates decimal, and both go up before a fourth digit', () => {
  expect(units.size(1000)).toBe('0.98 KiB');
  expect(units.size(999)).toBe('999 B');
  expect(units.size(3 * 2 ** 30)).toBe('3.00 GiB');
  expect(units.size(2 ** 70)).toBe('1048576 PiB');
  expect(units.rate(1_234_000_000, 'FLOP/s')).toBe('1.23 GFLOP/s');
  expect(units.rate(999.6)).toBe('1.00 k');
});

test('counts are whole up to a million', () => {
  expect(units.count(12_345)).toBe('12,345');
  expect(units.count(1_230_000)).toBe('1.23 M');
  expect(units.count(12.5)).toBe('12.5');
  expect(units.count(1234.5)).toBe('1,235');
});

test('percents have one digit more below ten', () => {
  expect(units.percent(0.6249)).toBe('62%');
  expect(units.percent(0.062)).toBe('6.2%');
  expect(units.percent(0.0996)).toBe('10%');
  expect(units.percent(0)).toBe('0%');
});

test('a speedup has one digit, a ratio two', () => {
  expect(units.times(2.24)).toBe('2.2×');
  expect(units.times(12.4)).toBe('12×');
  expect(units.ratio(0.974)).toBe('0.97×');
  expect(units.ratio(null)).toBe(units.UNKNOWN);
});
