import { expect, test } from 'vitest';
import { sortedBy, type PlainColumn } from '../../src/components/plain_table';

interface Row {
  readonly name: string;
  readonly calls: number | null;
}

const columns = [
  { name: 'name', title: 'Name', value: (row: Row) => row.name },
  { name: 'calls', title: 'Calls', value: (row: Row) => row.calls },
] as unknown as readonly PlainColumn<Row>[];
const rows: readonly Row[] = [
  { name: 'b', calls: 10 },
  { name: 'C', calls: null },
  { name: 'a', calls: 9 },
];
const names = (order: string) => sortedBy(rows, columns, order).map((row) => row.name);

test('numbers are sorted as numbers, names as words', () => {
  expect(names('calls')).toEqual(['a', 'b', 'C']);
  expect(names('name')).toEqual(['a', 'b', 'C']);
  expect(names('-name')).toEqual(['C', 'b', 'a']);
});

test('what is not known comes last, whichever way', () => {
  expect(names('-calls')).toEqual(['b', 'a', 'C']);
});

test('a column that is gone leaves the order alone', () => {
  expect(names('gone')).toEqual(['b', 'C', 'a']);
});
