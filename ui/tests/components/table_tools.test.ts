import { expect, test } from 'vitest';
import { filtersFrom, filtersToText } from '../../src/components/table_tools';

test('filters are written to the address and read again', () => {
  const filters = [
    { column: 'self_ns', operation: 'ge', value: '1000' },
    { column: 'name', operation: 'has', value: 'a,b:c=1' },
    { column: 'scope', operation: 'eq', value: '' },
  ];
  expect(filtersFrom(filtersToText(filters))).toEqual(filters);
});

test('what is no filter is left out', () => {
  expect(filtersFrom('')).toEqual([]);
  expect(filtersFrom('nonsense')).toEqual([]);
});
