/** Where a run was recorded whose parts lie far apart, and the way from one to the next. */

import { t } from '../i18n';
import * as units from '../units';
import { ranges } from './layout';
import type { TimelineState } from './state';
import type { Stretch, View } from './types';
import { whole } from './view';

/** More are reached through the overview. */
const MOST_LISTED = 8;

export function Stretches({ state }: { state: TimelineState }) {
  const { stretches, begin_ns: begin } = state.meta;
  if (stretches.length < 2) return null;
  const view = state.calmView.value;
  return (
    <nav
      class="tl-stretches small"
      aria-label={t('timeline.stretches', { count: stretches.length })}
    >
      <span class="dim">{t('timeline.stretches', { count: stretches.length })}</span>
      {stretches.slice(0, MOST_LISTED).map((one) => (
        <button
          key={one.begin_ns}
          type="button"
          class="chip"
          aria-pressed={isSeen(one, view)}
          onClick={() => state.jump(whole(one.begin_ns, one.end_ns))}
        >
          {t('timeline.stretch', {
            ranks: ranges(one.ranks),
            after: units.duration(one.begin_ns - begin),
            long: units.duration(one.end_ns - one.begin_ns),
          })}
        </button>
      ))}
      {stretches.length > MOST_LISTED && (
        <span class="dim">
          {t('timeline.moreStretches', { count: stretches.length - MOST_LISTED })}
        </span>
      )}
    </nav>
  );
}

/** Whether it is this one alone that is looked at. */
function isSeen({ begin_ns, end_ns }: Stretch, { t0, t1 }: View): boolean {
  const isTouched = t0 < end_ns && t1 > begin_ns;
  return isTouched && t1 - t0 < 4 * Math.max(1, end_ns - begin_ns);
}
