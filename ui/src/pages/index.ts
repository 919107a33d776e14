/** The pages. To add one: write its file, add one line here. Each is loaded when it is first opened. */

import type { FunctionComponent } from 'preact';
import type { Key } from '../i18n';

export interface Page {
  readonly name: string;
  readonly title: Key;
  /** Whether it shows one run, given as `run`. */
  readonly isOfRun: boolean;
  readonly load: () => Promise<{ default: FunctionComponent<{ run: string }> }>;
}

export const PAGES: readonly Page[] = [
  { name: 'runs', title: 'runs.title', isOfRun: false, load: () => import('./runs') },
  { name: 'overview', title: 'overview.title', isOfRun: true, load: () => import('./overview') },
  { name: 'steps', title: 'steps.title', isOfRun: true, load: () => import('./steps') },
  { name: 'operators', title: 'operators.title', isOfRun: true, load: () => import('./operators') },
  { name: 'pipeline', title: 'pipeline.title', isOfRun: true, load: () => import('./pipeline') },
  { name: 'timeline', title: 'timeline.title', isOfRun: true, load: () => import('./timeline') },
  { name: 'memory', title: 'memory.title', isOfRun: true, load: () => import('./memory') },
  { name: 'compare', title: 'compare.title', isOfRun: false, load: () => import('./compare') },
];
