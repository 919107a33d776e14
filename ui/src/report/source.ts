/** Answers as the server gives them, from what an exported file holds. */

import type { Source } from '../api';
import { t } from '../i18n';
import type { Held, HeldTable } from './held';
import { select } from './select';
import type { HeldTimeline } from './timeline';

/** Tables that add up over steps: of some steps alone they would have to be worked out anew. */
const KNOWS_STEPS =
  /^(steps|step-history|step-phases|data-steps|queue-history|memory-steps|memory-blocks|call-history)$/;

/** `timeline` unpacks what the file holds of it, when it is first asked for. */
export function sourceOf(held: Held, timeline: () => Promise<HeldTimeline | null>): Source {
  return async (address) => {
    const url = new URL(address, 'http://file/');
    const words = url.pathname.split('/').filter(Boolean).slice(1).map(decodeURIComponent);
    if (words[0] === 'runs' && words[2] === 'timeline')
      return timelineAnswer(await timeline(), words.slice(3), url.searchParams);
    const [status, body] = answer(held, words, url.searchParams);
    return new Response(JSON.stringify(body), { status });
  };
}

function timelineAnswer(
  timeline: HeldTimeline | null,
  words: readonly string[],
  asked: URLSearchParams,
): Response {
  const given = timeline?.answer(words, asked) ?? null;
  if (given instanceof ArrayBuffer) return new Response(given);
  const [status, body] = given === null ? notHere() : [200, { ok: true, ...given }];
  return new Response(JSON.stringify(body), { status });
}

type Answer = readonly [number, unknown];

function answer(held: Held, [first, ...rest]: readonly string[], asked: URLSearchParams): Answer {
  if (first === 'rules') return found(held.rules[rest[0] ?? '']);
  if (first !== 'runs') return notHere();
  const [, name = '', table = ''] = rest;
  return name === 'table'
    ? tableAnswer(held, table, asked)
    : found(held.answers[rest.slice(1).join('/')]);
}

function tableAnswer(held: Held, name: string, asked: URLSearchParams): Answer {
  const table = held.tables[name];
  if (table === undefined) return notHere();
  if (asked.has('steps') && !KNOWS_STEPS.test(name))
    return [404, { ok: false, error: t('report.wholeRun'), hint: t('report.wholeRunHint') }];
  const whole = name === 'call-history' ? callsOf(table, asked) : table;
  const selected = whole && select(whole, asked);
  return selected ? [200, { ok: true, table: name, ...selected }] : notHere();
}

/** The file holds the calls of the costliest operators and kernels, one after the other. */
function callsOf(table: HeldTable, asked: URLSearchParams): HeldTable | null {
  const at = (name: string) => table.columns.findIndex((column) => column.name === name);
  const scope = asked.get('scope');
  const rows = table.rows.filter((row) => row[at('name')] === asked.get('name'));
  if (rows.length === 0) return null;
  const isWithin = (where: unknown) =>
    where === scope || (typeof where === 'string' && where.startsWith(`${scope}.`));
  const chosen = scope === null ? rows : rows.filter((row) => isWithin(row[at('scope')]));
  return { columns: table.columns, rows: chosen, total: chosen.length };
}

function found(value: unknown): Answer {
  return value === undefined ? notHere() : [200, value];
}

function notHere(): Answer {
  return [404, { ok: false, error: t('report.notHere'), hint: t('report.notHereHint') }];
}
