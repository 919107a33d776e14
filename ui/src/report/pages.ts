/** The pages of an exported file. Others are about several runs. */

import type { Page } from '../pages/index';

export type { Page };

export const PAGES: readonly Page[] = [
  {
    name: 'overview',
    title: 'overview.title',
    isOfRun: true,
    load: () => import('../pages/overview'),
  },
  { name: 'steps', title: 'steps.title', isOfRun: true, load: () => import('../pages/steps') },
  {
    name: 'operators',
    title: 'operators.title',
    isOfRun: true,
    load: () => import('../pages/operators'),
  },
  {
    name: 'pipeline',
    title: 'pipeline.title',
    isOfRun: true,
    load: () => import('../pages/pipeline'),
  },
  {
    name: 'timeline',
    title: 'timeline.title',
    isOfRun: true,
    load: () => import('./timeline_page'),
  },
  { name: 'memory', title: 'memory.title', isOfRun: true, load: () => import('../pages/memory') },
];
