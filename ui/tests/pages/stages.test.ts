import { expect, test } from 'vitest';
import { inputsOf, pipelines, processes, type Stage } from '../../src/pages/pipeline/stages';

function stage(name: string, feeds: string | null, more: Partial<Stage> = {}): Stage {
  return {
    rank: 0,
    loader: 1,
    position: 0,
    stage: name,
    feeds,
    workers: null,
    batches: null,
    mean_ns: null,
    share: null,
    busy_ratio: null,
    queue: null,
    queue_mean: null,
    capacity: null,
    use_ratio: null,
    empty_ratio: null,
    full_ratio: null,
    is_at_fault: false,
    reason: null,
    ...more,
  };
}

const names = (found: ReturnType<typeof processes>) =>
  found.map((process) => process.stages.map((one) => one.stage));

test('there is one pipeline for each rank and loader', () => {
  const rows = [
    stage('load', 'training'),
    stage('load', 'training', { loader: 2 }),
    stage('training', null),
    stage('load', 'training', { rank: 1 }),
  ];
  expect(pipelines(rows).map((one) => one.length)).toEqual([2, 1, 1]);
});

test('a queue ends a process, and training is one of its own', () => {
  const found = processes([
    stage('fetch', 'collate', { workers: 2 }),
    stage('collate', 'transfer', { workers: 2, queue: 'data' }),
    stage('transfer', 'training'),
    stage('training', null),
  ]);
  expect(names(found)).toEqual([['fetch', 'collate'], ['transfer'], ['training']]);
  expect(found.map((process) => process.queue?.stage ?? null)).toEqual(['collate', null, null]);
  expect(found[0]?.workers).toBe(2);
});

test('where branches meet, a process has several inputs', () => {
  const found = processes([
    stage('images', 'zip'),
    stage('labels', 'zip'),
    stage('zip', 'training'),
    stage('training', null),
  ]);
  expect(names(found)).toEqual([['images'], ['labels', 'zip'], ['training']]);
  const zip = found[1]!;
  expect(names([...inputsOf(zip, found)])).toEqual([['images']]);
});
