import { expect, test } from 'vitest';
import {
  frameworks,
  isChanging,
  matches,
  startedMs,
  type ListedRun,
} from '../../src/pages/runs/run';

const run: ListedRun = {
  id: 'day1/demo',
  name: 'Demo run',
  started_at: '2026-01-02T03:04:05Z',
  state: 'complete',
  size_bytes: 1,
  ranks: 2,
  frameworks: { torch: '2.13.0', lightning: '' },
  steps: 10,
  step_ns: 1e6,
  finding: { rule: 'data-starvation', title: 'Waits for data', share: 0.6, expected_speedup: 2 },
  tags: ['baseline'],
  problem: null,
  digest: 'ready',
};

test('a search finds runs by all of its words, wherever they are', () => {
  expect(matches(run, '')).toBe(true);
  expect(matches(run, 'DEMO torch baseline')).toBe(true);
  expect(matches(run, 'starvation waits')).toBe(true);
  expect(matches(run, 'demo jax')).toBe(false);
});

test('frameworks have their versions where they are known', () => {
  expect(frameworks(run)).toBe('torch 2.13.0, lightning');
});

test('a run changes while it is live or being read', () => {
  expect(isChanging(run)).toBe(false);
  expect(isChanging({ ...run, state: 'live' })).toBe(true);
  expect(isChanging({ ...run, digest: 'working' })).toBe(true);
});

test('a run that began at an unknown time has none', () => {
  expect(startedMs(run)).toBe(Date.UTC(2026, 0, 2, 3, 4, 5));
  expect(startedMs({ ...run, started_at: null })).toBeNull();
});
