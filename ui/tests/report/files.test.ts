import { expect, test } from 'vitest';
import { asCsv, asJson } from '../../src/report/files';

const columns = ['name', 'calls'].map((name) => ({ name, type: 'str', doc: '' }));

test('a cell with a comma, a quote or a new line is quoted', () => {
  const rows = [
    ['plain', 1],
    ['a,b', null],
    ['say "hi"', 2],
    ['two\nlines', 3],
  ];
  expect(asCsv({ columns, rows, total: 4 })).toBe(
    'name,calls\nplain,1\n"a,b",\n"say ""hi""",2\n"two\nlines",3\n',
  );
});

test('JSON has what the server would answer', () => {
  expect(JSON.parse(asJson({ columns, rows: [['a', 1]], total: 1 }))).toEqual({
    ok: true,
    columns,
    rows: [['a', 1]],
  });
});
