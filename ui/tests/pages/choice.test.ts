import { expect, test } from 'vitest';
import { chosenRange, chooseStep, setRange } from '../../src/pages/steps/choice';
import { go, parse } from '../../src/router';

test('a range of steps is in the address, and read from it', () => {
  go('#/run/demo/steps');
  expect(chosenRange()).toBeNull();
  setRange({ first: 10, last: 20 });
  expect(parse(location.hash).query).toEqual({ steps: '10:20' });
  expect(chosenRange()).toEqual({ first: 10, last: 20 });
  chooseStep(12);
  expect(parse(location.hash).query).toEqual({ steps: '10:20', step: '12' });
  setRange(null);
  expect(parse(location.hash).query).toEqual({ step: '12' });
});

test('what is no range counts as none', () => {
  go('#/run/demo/steps?steps=ten:20');
  expect(chosenRange()).toBeNull();
});
