/** Moments and steps above the lanes. */

import { useMemo, useRef } from 'preact/hooks';
import { theme } from '../theme';
import { colours, fitted, prepared, stepStarts, xOf } from './draw';
import { shownName } from './shown_name';
import type { TimelineState } from './state';
import { ticks } from './ticks';
import { useDrawing } from './use_canvas';

const HEIGHT = 38;
const STEP_BAND = 18;

export function Ruler({ state }: { state: TimelineState }) {
  const width = state.width.value;
  const canvas = useRef<HTMLCanvasElement>(null);
  const tones = useMemo(colours, [theme.value]);
  useDrawing(() => {
    void state.fresh.value;
    const view = state.view.value;
    if (canvas.current === null || width === 0) return;
    const context = prepared(canvas.current, width, HEIGHT);
    if (context === null) return;
    context.fillStyle = tones.surface;
    context.fillRect(0, 0, width, HEIGHT);
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    for (const { moment, text } of ticks(view, width)) {
      const x = Math.round(xOf(moment, view, width));
      context.fillStyle = tones.strong;
      context.fillRect(x, 4, 1, HEIGHT - STEP_BAND - 4);
      context.fillStyle = tones.dim;
      context.fillText(text, x + 4, 11);
    }
    for (const { x, room, code } of stepStarts(state, view, width)) {
      context.fillStyle = tones.strong;
      context.fillRect(Math.round(x), HEIGHT - STEP_BAND, 1, STEP_BAND);
      const left = Math.max(0, x);
      const letters = Math.floor((room - (left - x) - 8) / 6);
      const recorded = state.names.name(code);
      const name = recorded === null ? null : shownName(state.names.kind(code), recorded);
      if (name === null) continue;
      context.fillStyle = tones.text;
      context.fillText(fitted(name, letters), left + 4, HEIGHT - STEP_BAND / 2);
    }
    const hover = state.hover.value;
    if (hover !== null) {
      context.fillStyle = tones.accent;
      context.fillRect(Math.round(xOf(hover.moment, view, width)), 0, 1, HEIGHT);
    }
  }, [state, width, tones]);
  return (
    <div class="tl-ruler">
      <div class="tl-heads-space" />
      <div class="tl-ruler-area">
        <canvas
          ref={canvas}
          style={{ width: `${width}px`, height: `${HEIGHT}px` }}
          aria-hidden="true"
        />
      </div>
    </div>
  );
}
