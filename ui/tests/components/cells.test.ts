import { describe, expect, test } from 'vitest';
import type { Column } from '../../src/api';
import * as cells from '../../src/components/cells';

const column = (name: string, type = 'i64'): Column => ({ name, type, doc: '' });

describe('a value reads by the name of its column', () => {
  test.each([
    ['dur_ns', 1_500_000, '1.50 ms'],
    ['ts_ns', 1_500_000, '0.001500 s'],
    ['bytes', 2048, '2.00 KiB'],
    ['bytes_per_s', 2048, '2.00 KiB/s'],
    ['flops_per_s', 2e9, '2.00 GFLOP/s'],
    ['share', 0.25, '25%'],
    ['event_id', 1_234_567, '1234567'],
    ['address', 255, '0xff'],
    ['worker', -1, '–'],
    ['calls', 12_345, '12,345'],
  ])('%s', (name, value, text) => expect(cells.number(name, value)).toBe(text));

  test('what is not known is empty', () => {
    expect(cells.text(column('dur_ns'), null)).toBe('');
    expect(cells.text(column('dur_ns'), undefined)).toBe('');
  });

  test('shapes and dtypes are as people write them', () => {
    expect(cells.text(column('input_shapes', 'str'), '[[8,16],[],[4],[[1,2],[3]]]')).toBe(
      '8×16, ·, 4, (1×2, 3)',
    );
    expect(cells.text(column('input_dtypes', 'str'), '["float",null,"float","int"]')).toBe(
      'float, int',
    );
    expect(cells.text(column('input_shapes', 'str'), 'broken')).toBe('broken');
  });
});

test('a heading is the name without its unit', () => {
  expect(cells.heading(column('own_device_ns'))).toBe('Own device');
  expect(cells.heading(column('is_odd', 'bool'))).toBe('Odd');
  expect(cells.heading(column('frames_per_s'))).toBe('Frames/s');
});

describe('what somebody types as a value', () => {
  test.each([
    ['dur_ns', 'i64', '1.5ms', '1500000'],
    ['dur_ns', 'i64', ' 2 μs ', '2000'],
    ['bytes', 'i64', '2 MiB', '2097152'],
    ['share', 'f64', '30 %', '0.3'],
    ['share', 'f64', '.5', '0.5'],
    ['calls', 'i64', '3k', '3000'],
    ['dur_ns', 'i64', '3 apples', null],
    ['dur_ns', 'i64', 'ms', null],
    ['name', 'str', ' aten::mm ', 'aten::mm'],
    ['name', 'str', '  ', null],
  ])('%s (%s): %s', (name, type, typed, value) => {
    expect(cells.parsed(column(name, type), typed)).toBe(value);
  });
});
