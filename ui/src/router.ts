/** The address holds all that is seen: `#/run/<id>/<page>?<view>`. Only this file reads and writes it. */

import { computed, signal } from '@preact/signals';

export type Query = Readonly<Record<string, string>>;

export interface Route {
  /** Name of the page: runs, overview, … */
  readonly page: string;
  /** Identity of the run, or null on pages that are not about one. */
  readonly run: string | null;
  readonly query: Query;
}

/** What is kept when another page of the same run is opened: the choice of steps and of the rank. */
const KEPT_BETWEEN_PAGES = ['steps', 'rank'];

export function parse(hash: string): Route {
  const [path = '', search = ''] = split(hash.replace(/^#/, ''), '?');
  const parts = path.split('/').filter(Boolean).map(decode);
  const query = Object.fromEntries(new URLSearchParams(search));
  if (parts[0] === 'run' && parts[1] !== undefined) {
    return { page: parts[2] ?? 'overview', run: parts[1], query };
  }
  return { page: parts[0] ?? 'runs', run: null, query };
}

export function href(page: string, run: string | null = null, query: Query = {}): string {
  const path = run === null ? `#/${page}` : `#/run/${encodeURIComponent(run)}/${page}`;
  const search = new URLSearchParams(
    Object.entries(query).filter(([, value]) => value !== ''),
  ).toString();
  return search === '' ? path : `${path}?${search}`;
}

const current = signal<Route>(parse(location.hash));
export const route = computed(() => current.value);

addEventListener('hashchange', () => {
  current.value = parse(location.hash);
});

/** The address of another page of a run, with the steps and the rank chosen now. */
export function hrefOfPage(page: string, run: string, query: Query = {}): string {
  const { run: here, query: now } = route.value;
  const kept =
    here !== run
      ? {}
      : Object.fromEntries(
          KEPT_BETWEEN_PAGES.flatMap((key) => (now[key] ? [[key, now[key]]] : [])),
        );
  return href(page, run, { ...kept, ...query });
}

export function go(address: string): void {
  location.hash = address;
}

/** Changes what is seen of this page. An empty or null value takes the key away. Leaves no step in the history unless `push`. */
export function setQuery(
  patch: Record<string, string | number | null>,
  { push = false } = {},
): void {
  const { page, run, query } = current.value;
  const next: Record<string, string> = { ...query };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null || value === '') delete next[key];
    else next[key] = String(value);
  }
  const address = href(page, run, next);
  if (address === location.hash) return;
  history[push ? 'pushState' : 'replaceState'](null, '', address);
  current.value = { page, run, query: next };
}

function split(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
