import { describe, expect, test } from 'vitest';
import { layout } from '../../src/components/icicle_layout';

const boxes = (...arguments_: Parameters<typeof layout>) =>
  layout(...arguments_).map(({ branch, depth, left, width }) => [branch.scope, depth, left, width]);

describe('a tree of modules', () => {
  const tree = [
    { scope: '', value: 100 },
    { scope: 'net', value: 80 },
    { scope: 'net.a', value: 20 },
    { scope: 'net.b.c', value: 40 },
    { scope: 'loss', value: 10 },
  ];

  test('children are inside their parent, side by side', () => {
    expect(boxes(tree, null)).toEqual([
      ['', 0, 0, 1],
      ['net', 1, 0, 0.8],
      ['net.a', 2, 0, 0.2],
      ['net.b.c', 2, 0.2, 0.4],
      ['loss', 1, 0.8, 0.1],
    ]);
  });

  test('a chosen branch is as wide as the whole', () => {
    expect(boxes(tree, 'net')).toEqual([
      ['net', 0, 0, 1],
      ['net.a', 1, 0, 0.25],
      ['net.b.c', 1, 0.25, 0.5],
    ]);
  });

  test('a choice that is gone shows all', () => {
    expect(boxes(tree, 'gone').length).toBe(tree.length);
  });
});

test('several tops share the width', () => {
  const tops = [
    { scope: 'a', value: 30 },
    { scope: 'b', value: 10 },
  ];
  expect(boxes(tops, null)).toEqual([
    ['a', 0, 0, 0.75],
    ['b', 0, 0.75, 0.25],
  ]);
});

test('what is less than a pixel, or takes no time at all, has no box', () => {
  const thin = [
    { scope: '', value: 1e6 },
    { scope: 'a', value: 1 },
  ];
  expect(boxes(thin, null).map(([scope]) => scope)).toEqual(['']);
  expect(boxes([{ scope: '', value: 0 }], null)).toEqual([]);
});
