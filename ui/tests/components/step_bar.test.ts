import { expect, test } from 'vitest';
import { laid } from '../../src/components/step_bar';

test('parts follow each other in the order of a step, without empty ones', () => {
  const lengths = new Map([
    ['update', 5],
    ['gap', 10],
    ['forward', 20],
    ['rest', 0],
    ['unknown', 99],
  ]);
  expect(laid(lengths)).toEqual([
    { part: 'gap', begin_ns: 0, end_ns: 10 },
    { part: 'forward', begin_ns: 10, end_ns: 30 },
    { part: 'update', begin_ns: 30, end_ns: 35 },
  ]);
});
