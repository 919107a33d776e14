/** What the pointer is on, beside it. */

import { useEffect, useState } from 'preact/hooks';
import { get, ofRun } from '../api';
import { t } from '../i18n';
import * as units from '../units';
import type { TimelineState } from './state';
import type { Brief } from './types';

/** The server is asked once the pointer rests. */
const REST_MS = 60;

export function Tooltip({ state }: { state: TimelineState }) {
  const hover = state.hover.value;
  const [event, setEvent] = useState<Brief | null>(null);
  const row = hover?.row ?? null;
  const moment = hover?.moment ?? null;
  const isStill =
    event !== null &&
    row === event.row &&
    moment !== null &&
    moment >= event.ts_ns &&
    moment < event.ts_ns + event.dur_ns;
  useEffect(() => {
    if (isStill) return;
    setEvent(null);
    if (row === null || moment === null) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      const near = (state.view.value.t1 - state.view.value.t0) / Math.max(1, state.width.value);
      get<{ event: Brief | null }>(
        ofRun(state.run, 'timeline/at'),
        { row, t0: Math.floor(moment - near / 2), t1: Math.ceil(moment + near / 2) },
        { signal: stop.signal },
      ).then(
        (answer) => setEvent(answer.event),
        () => setEvent(null),
      );
    }, REST_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [row, moment, isStill]);
  if (hover === null || event === null) return null;
  const toLeft = hover.x > innerWidth - 380;
  const style = {
    left: `${toLeft ? hover.x - 12 : hover.x + 14}px`,
    top: `${Math.min(hover.y + 16, innerHeight - 90)}px`,
  };
  return (
    <div class={toLeft ? 'tl-tooltip to-left' : 'tl-tooltip'} style={style} aria-hidden="true">
      <strong>{event.name}</strong>
      <span>
        {units.duration(event.dur_ns)}
        {event.self_ns !== event.dur_ns && (
          <span class="dim">
            {' '}
            · {t('timeline.self')} {units.duration(event.self_ns)}
          </span>
        )}
      </span>
      <span class="dim">
        {event.kind} · {units.moment(event.ts_ns)}
      </span>
    </div>
  );
}
