/** The keys of the timeline. Zooming and moving go on while a key is held. */

import type { Shortcut } from '../keys';
import type { TimelineState } from './state';
import type { Brief } from './types';
import { moved, zoomed } from './view';

/** How much what is seen shrinks or moves in a second of holding a key, as a factor and in screens. */
const ZOOM_PER_SECOND = 12;
const SCREENS_PER_SECOND = 1.6;
/** A short press does that much at once. */
const TAP_SECONDS = 0.06;

type Motion = 'in' | 'out' | 'left' | 'right';

const HELD: readonly [string, Motion][] = [
  ['KeyW', 'in'],
  ['KeyS', 'out'],
  ['KeyA', 'left'],
  ['KeyD', 'right'],
  ['ArrowLeft', 'left'],
  ['ArrowRight', 'right'],
];

export function shortcuts(state: TimelineState): {
  readonly shortcuts: readonly Shortcut[];
  readonly listen: () => () => void;
} {
  const held = new Map<string, Motion>();
  let frame = 0;
  let last = 0;
  const tick = (now: number) => {
    const seconds = Math.min(0.05, (now - last) / 1000);
    last = now;
    for (const motion of held.values()) state.view.value = after(state, motion, seconds);
    frame = held.size > 0 ? requestAnimationFrame(tick) : 0;
  };
  const start = (code: string, motion: Motion) => {
    if (held.has(code)) return;
    held.set(code, motion);
    state.view.value = after(state, motion, TAP_SECONDS);
    if (frame === 0) {
      last = performance.now();
      frame = requestAnimationFrame(tick);
    }
  };
  const toEvent = (event: Brief | null | undefined) => {
    if (event) void state.select(event.id, { isToBeShown: true });
  };
  const now = () => state.selected.value;
  return {
    shortcuts: [
      ...HELD.map(([code, motion]) => ({
        code,
        does: `timeline.keys.${motion}` as const,
        run: () => start(code, motion),
      })),
      { code: 'Digit0', does: 'timeline.keys.whole', run: () => state.jump(state.limits) },
      {
        code: 'Digit0',
        control: true,
        does: 'timeline.keys.whole',
        run: () => state.jump(state.limits),
      },
      { code: 'Backspace', does: 'timeline.keys.back', run: () => state.back() },
      { code: 'KeyF', does: 'timeline.keys.focus', run: () => state.focus() },
      { code: 'KeyM', does: 'timeline.keys.mark', run: () => state.mark() },
      { code: '.', does: 'timeline.keys.next', run: () => toEvent(now()?.next) },
      { code: ',', does: 'timeline.keys.previous', run: () => toEvent(now()?.previous) },
      { code: 'ArrowUp', does: 'timeline.keys.up', run: () => toEvent(now()?.around[0]) },
      { code: 'ArrowDown', does: 'timeline.keys.down', run: () => toEvent(now()?.first_inside) },
      { code: ']', does: 'timeline.keys.effect', run: () => toEvent(now()?.effects[0]) },
      { code: '[', does: 'timeline.keys.cause', run: () => toEvent(now()?.causes[0]) },
      { code: 'KeyN', does: 'timeline.keys.nextHit', run: () => void state.nextHit('next') },
      {
        code: 'KeyN',
        shift: true,
        does: 'timeline.keys.previousHit',
        run: () => void state.nextHit('previous'),
      },
      { code: 'Escape', does: 'timeline.keys.clear', shown: 'Esc', run: () => state.clear() },
      {
        code: 'KeyQ',
        does: 'timeline.keys.drawer',
        run: () => {
          state.isDrawerOpen.value = !state.isDrawerOpen.value;
        },
      },
    ],
    listen: () => {
      const release = (event: KeyboardEvent) => held.delete(event.code);
      const releaseAll = () => held.clear();
      addEventListener('keyup', release);
      addEventListener('blur', releaseAll);
      return () => {
        removeEventListener('keyup', release);
        removeEventListener('blur', releaseAll);
        cancelAnimationFrame(frame);
      };
    },
  };
}

function after(state: TimelineState, motion: Motion, seconds: number) {
  const view = state.view.value;
  const span = view.t1 - view.t0;
  // Around the pointer, where it is on the timeline; else around the middle.
  const at = state.hover.value?.moment ?? (view.t0 + view.t1) / 2;
  switch (motion) {
    case 'in':
      return zoomed(view, ZOOM_PER_SECOND ** -seconds, at, state.limits);
    case 'out':
      return zoomed(view, ZOOM_PER_SECOND ** seconds, at, state.limits);
    case 'left':
      return moved(view, -span * SCREENS_PER_SECOND * seconds, state.limits);
    case 'right':
      return moved(view, span * SCREENS_PER_SECOND * seconds, state.limits);
  }
}
