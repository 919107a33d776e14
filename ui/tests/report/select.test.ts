import { describe, expect, test } from 'vitest';
import type { HeldTable } from '../../src/report/held';
import { select } from '../../src/report/select';

const table: HeldTable = {
  columns: [
    { name: 'name', type: 'str', doc: '' },
    { name: 'rank', type: 'i64', doc: '' },
    { name: 'step', type: 'i64', doc: '' },
    { name: 'self_ns', type: 'i64', doc: '' },
    { name: 'is_odd', type: 'bool', doc: '' },
  ],
  rows: [
    ['aten::mm', 0, 1, 30, true],
    ['aten::add_', 0, 2, null, false],
    ['Net.forward', 1, 2, 10, true],
    ['aten::addmm', 1, 3, 20, false],
  ],
  total: 4,
};

const names = (asked: Record<string, string>) =>
  select(table, new URLSearchParams(asked))?.rows.map((row) => row[0]) ?? null;

describe('conditions', () => {
  test.each([
    [{ where: 'self_ns:ge:20' }, ['aten::mm', 'aten::addmm']],
    [{ where: 'self_ns:lt:20' }, ['Net.forward']],
    [{ where: 'self_ns:null' }, ['aten::add_']],
    [{ where: 'self_ns:known,rank:eq:1' }, ['Net.forward', 'aten::addmm']],
    [{ where: 'name:has:ADD' }, ['aten::add_', 'aten::addmm']],
    [{ where: 'rank:in:1|2' }, ['Net.forward', 'aten::addmm']],
    [{ where: 'is_odd:eq:true' }, ['aten::mm', 'Net.forward']],
    [{ where: 'name:ne:aten::mm,name:has:aten' }, ['aten::add_', 'aten::addmm']],
    [{ rank: '1' }, ['Net.forward', 'aten::addmm']],
    [{ steps: '2:3' }, ['aten::add_', 'Net.forward', 'aten::addmm']],
    [{ q: 'net forward' }, ['Net.forward']],
    [{ q: 'ATEN add' }, ['aten::add_', 'aten::addmm']],
  ])('%o', (asked, found) => expect(names(asked as Record<string, string>)).toEqual(found));

  test('a column that the table does not have is not answered', () => {
    expect(names({ where: 'gone:eq:1' })).toBeNull();
  });
});

describe('order', () => {
  test('what is not known comes last, whichever way', () => {
    expect(names({ order: 'self_ns' })?.at(-1)).toBe('aten::add_');
    expect(names({ order: 'self_ns', desc: '1' })).toEqual([
      'aten::mm',
      'aten::addmm',
      'Net.forward',
      'aten::add_',
    ]);
  });

  test('rows of one value stay in the order of the table', () => {
    expect(names({ order: 'rank', desc: '1' })).toEqual([
      'Net.forward',
      'aten::addmm',
      'aten::mm',
      'aten::add_',
    ]);
  });

  test('the table itself is not sorted', () => {
    const before = [...table.rows];
    names({ order: 'self_ns' });
    expect(table.rows).toEqual(before);
  });
});

test('a page has its rows, and the number of all', () => {
  const page = select(table, new URLSearchParams({ order: 'step', offset: '1', limit: '2' }));
  expect(page?.rows.map((row) => row[0])).toEqual(['aten::add_', 'Net.forward']);
  expect(page?.total).toBe(4);
  expect(page).not.toHaveProperty('cut_from');
});

test('a table that was cut says from how many rows', () => {
  expect(select({ ...table, total: 900 }, new URLSearchParams())?.cut_from).toBe(900);
});
