/** From a row of evidence to the page that shows it. */

import { onTimeline } from '../../components/places';
import { t } from '../../i18n';
import { hrefOfPage } from '../../router';
import * as units from '../../units';
import type { Evidence } from './answers';

type Row = Evidence['rows'][number];

export interface Place {
  readonly href: string;
  readonly title: string;
}

/** A row of evidence as a link, or null where no page shows such rows. */
export function placeOf(run: string, table: string, row: Row): Place | null {
  if (table === 'events' && row.id != null)
    return { href: ofEvent(run, row), title: eventTitle(row) };
  if (table === 'steps' && row.step != null) {
    return {
      href: hrefOfPage('steps', run, { step: String(row.step), ...ofRank(row) }),
      title: t('overview.jump.step', { step: Number(row.step) }),
    };
  }
  if (
    (table === 'operators' || table === 'kernels' || table === 'operator-types') &&
    typeof row.name === 'string'
  ) {
    return {
      href: operatorsOf(run, table === 'kernels' ? 'kernels' : 'operators', row.name),
      title: row.name,
    };
  }
  if (table === 'counters')
    return { href: hrefOfPage('memory', run), title: t('overview.jump.counters') };
  if (table === 'data-pipeline' || table === 'data-steps')
    return { href: hrefOfPage('pipeline', run), title: t('overview.jump.pipeline') };
  if (row.ts_ns != null)
    return {
      href: onTimeline(run, { ts_ns: Number(row.ts_ns), dur_ns: Number(row.dur_ns ?? 0) }),
      title: t('overview.jump.moment', { moment: units.moment(Number(row.ts_ns)) }),
    };
  return null;
}

/** An event with all of its step, which is what it is judged against; one outside steps with its surroundings. */
function ofEvent(run: string, row: Row): string {
  if (row.step != null)
    return hrefOfPage('timeline', run, {
      sel: String(row.id),
      step: String(row.step),
      ...ofRank(row),
    });
  return onTimeline(run, {
    event: Number(row.id),
    ts_ns: Number(row.ts_ns ?? 0),
    dur_ns: Number(row.dur_ns ?? 0),
  });
}

/** Places of a piece of evidence, each once. */
export function placesOf(run: string, evidence: Evidence): Place[] {
  const found = new Map<string, Place>();
  for (const row of evidence.rows) {
    const place = placeOf(run, evidence.table, row);
    if (place !== null && !found.has(place.href)) found.set(place.href, place);
  }
  return [...found.values()];
}

/** An operator or kernel among its like, with its calls over time. */
export function operatorsOf(run: string, tab: 'operators' | 'kernels', name: string): string {
  const filter: Record<string, string> =
    tab === 'operators' ? { 'ops.where': `name:eq:${name}` } : {};
  return hrefOfPage('operators', run, { tab, op: name, ...filter });
}

function eventTitle(row: Row): string {
  const what =
    `${typeof row.name === 'string' ? `${row.name} ` : ''}${row.dur_ns == null ? '' : units.duration(Number(row.dur_ns))}`.trim();
  if (row.step != null) return t('overview.jump.event', { what, step: Number(row.step) });
  return `${what} ${t('overview.jump.moment', { moment: units.moment(Number(row.ts_ns ?? 0)) })}`.trim();
}

function ofRank(row: Row): Record<string, string> {
  return row.rank == null ? {} : { rank: String(row.rank) };
}
