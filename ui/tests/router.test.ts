import { beforeEach, describe, expect, test } from 'vitest';
import { go, href, hrefOfPage, parse, route, setQuery } from '../src/router';

const pushed = () => (history as unknown as { pushed: string[] }).pushed;

describe('parse', () => {
  test.each([
    ['', { page: 'runs', run: null, query: {} }],
    ['#/compare?a=x&b=y', { page: 'compare', run: null, query: { a: 'x', b: 'y' } }],
    ['#/run/demo', { page: 'overview', run: 'demo', query: {} }],
    ['#/run/a%2Fb/steps?step=3', { page: 'steps', run: 'a/b', query: { step: '3' } }],
    ['#/run/100%/memory', { page: 'memory', run: '100%', query: {} }],
  ])('%s', (hash, expected) => expect(parse(hash)).toEqual(expected));
});

test('an address leads back to what it was made of', () => {
  const query = { q: 'aten::mm & co', where: 'name:has:=?#', columns: 'a b' };
  expect(parse(href('operators', 'day 1/run#2', query))).toEqual({
    page: 'operators',
    run: 'day 1/run#2',
    query,
  });
});

test('empty values are not in the address', () => {
  expect(href('steps', 'demo', { step: '', rank: '0' })).toBe('#/run/demo/steps?rank=0');
});

describe('with a run on the page', () => {
  beforeEach(() => go(href('steps', 'demo', { steps: '10:20', rank: '1', step: '12' })));

  test('another page of the run keeps the steps and the rank', () => {
    expect(parse(hrefOfPage('memory', 'demo', { tab: 'curve' })).query).toEqual({
      steps: '10:20',
      rank: '1',
      tab: 'curve',
    });
  });

  test('a page of another run keeps nothing', () => {
    expect(hrefOfPage('memory', 'other')).toBe('#/run/other/memory');
  });

  test('a choice is added, changed and taken away', () => {
    setQuery({ step: null, rank: 2, tab: 'one' });
    expect(route.value.query).toEqual({ steps: '10:20', rank: '2', tab: 'one' });
    expect(parse(location.hash)).toEqual(route.value);
    expect(pushed()).toEqual([]);
  });

  test('a choice can be gone back from', () => {
    setQuery({ step: 13 }, { push: true });
    expect(pushed()).toEqual([location.hash]);
    expect(route.value.query['step']).toBe('13');
  });

  test('the same choice again leaves no trace', () => {
    setQuery({ step: 12 }, { push: true });
    expect(pushed()).toEqual([]);
  });
});
