import { expect, test } from 'vitest';
import { chosenTab } from '../../src/components/tabs';
import { go } from '../../src/router';

const tabs = [
  { name: 'one', title: '1' },
  { name: 'two', title: '2' },
];

test('the tab is the one in the address, or the first', () => {
  go('#/run/demo/memory?tab=two&side=gone');
  expect(chosenTab(tabs)).toBe('two');
  expect(chosenTab(tabs, 'side')).toBe('one');
  expect(chosenTab([])).toBe('');
});
