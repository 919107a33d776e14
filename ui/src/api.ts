/** Questions to the server, and the states of their answers. Slow ones are asked again until they are ready. */

import { useEffect, useRef, useState } from 'preact/hooks';

export type Parameters = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Progress {
  readonly what?: string;
  readonly done?: number;
  readonly of?: number;
  readonly seconds?: number;
}

/** An answer in words: what went wrong, and what to do. */
export class Failure extends Error {
  constructor(
    message: string,
    readonly hint: string | null,
    readonly status: number,
  ) {
    super(message);
  }
}

export type Loading<T> =
  | { readonly state: 'loading'; readonly progress: Progress | null }
  | { readonly state: 'failed'; readonly failure: Failure }
  | { readonly state: 'ready'; readonly value: T; readonly isRefreshing: boolean };

export interface Column {
  readonly name: string;
  readonly type: string;
  readonly doc: string;
  readonly unit?: string | null;
}

export type Cell =
  string | number | boolean | null | readonly unknown[] | { readonly [key: string]: unknown };

export interface TableAnswer {
  readonly table: string;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
  readonly total: number;
  /** In an exported file: rows that the run has, where the file holds fewer. */
  readonly cut_from?: number;
}

/** Where answers come from: the server, or the data inside a file that was exported. */
export type Source = (address: string, init: RequestInit) => Promise<Response>;
const server: Source = (address, init) => fetch(address, init);
let source = server;

export function setSource(other: Source): void {
  source = other;
}

/** In an exported file there is none that a link could point to. */
export function hasServer(): boolean {
  return source === server;
}

/** How long to wait before asking again for an answer that is being worked out. */
const FIRST_WAIT_MS = 150;
const LONGEST_WAIT_MS = 2000;

export function address(path: string, parameters: Parameters = {}): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) {
    if (value === null || value === undefined || value === '') continue;
    search.set(key, typeof value === 'boolean' ? (value ? '1' : '0') : String(value));
  }
  const text = search.toString();
  return `api/${path}${text && '?'}${text}`;
}

/** `runs/<id>/<rest>`; the identity of a run may hold slashes and stays one part of the address. */
export function ofRun(run: string, rest = ''): string {
  return `runs/${encodeURIComponent(run)}${rest && '/'}${rest}`;
}

export interface Asking {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

export async function get<T>(
  path: string,
  parameters: Parameters = {},
  asking: Asking = {},
): Promise<T> {
  let wait = FIRST_WAIT_MS;
  for (;;) {
    const answer = await ask(address(path, parameters), { signal: asking.signal ?? null });
    if (answer.status !== 202) return answer.body as T;
    asking.onProgress?.((answer.body as { working?: Progress }).working ?? {});
    await sleep(wait, asking.signal);
    wait = Math.min(wait * 1.5, LONGEST_WAIT_MS);
  }
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  const answer = await ask(address(path), {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Strobe': '1' },
    body: JSON.stringify(body),
  });
  return answer.body as T;
}

/** Bytes, for the timeline. */
export async function getBytes(
  path: string,
  parameters: Parameters = {},
  asking: Asking = {},
): Promise<ArrayBuffer> {
  let wait = FIRST_WAIT_MS;
  for (;;) {
    const response = await reach(address(path, parameters), { signal: asking.signal ?? null });
    if (response.status === 200) return response.arrayBuffer();
    const body = await decoded(response);
    if (response.status !== 202)
      throw new Failure(
        String(body.error ?? response.statusText),
        textOrNull(body.hint),
        response.status,
      );
    asking.onProgress?.((body.working as Progress | undefined) ?? {});
    await sleep(wait, asking.signal);
    wait = Math.min(wait * 1.5, LONGEST_WAIT_MS);
  }
}

async function ask(
  where: string,
  init: RequestInit,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await reach(where, init);
  const body = await decoded(response);
  if (body.ok !== true) {
    throw new Failure(
      String(body.error ?? response.statusText),
      textOrNull(body.hint),
      response.status,
    );
  }
  return { status: response.status, body };
}

async function reach(where: string, init: RequestInit): Promise<Response> {
  try {
    return await source(where, { credentials: 'same-origin', ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Failure(
      'The server does not answer.',
      'Is it still running? strobe status; strobe start',
      0,
    );
  }
}

async function decoded(response: Response): Promise<Record<string, unknown>> {
  try {
    return (await response.json()) as Record<string, unknown>;
  } catch {
    return {
      ok: false,
      error: `The server answered ${response.status} ${response.statusText}`.trim(),
    };
  }
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(new DOMException('aborted', 'AbortError'));
    });
  });
}

/** The answer to a question, for a component. `path` null asks nothing yet. Asks again when the question or `revision` changes. */
export function useAnswer<T>(
  path: string | null,
  parameters: Parameters = {},
  revision = 0,
): Loading<T> {
  const [loading, setLoading] = useState<Loading<T>>({ state: 'loading', progress: null });
  const question = path === null ? null : address(path, parameters);
  const last = useRef<{ path: string; question: string } | null>(null);
  useEffect(() => {
    if (path === null || question === null) return;
    const stop = new AbortController();
    // The same place with other parameters keeps what is shown until the new answer comes.
    const isSamePlace = last.current?.path === path;
    // Of a run that has grown nobody asked anew: what is shown stays as it is until there is more.
    const isQuiet = last.current?.question === question;
    last.current = { path, question };
    setLoading((now) =>
      isSamePlace && now.state === 'ready'
        ? { ...now, isRefreshing: !isQuiet }
        : { state: 'loading', progress: null },
    );
    const onProgress = (progress: Progress) => {
      setLoading((now) => (now.state === 'ready' ? now : { state: 'loading', progress }));
    };
    get<T>(path, parameters, { signal: stop.signal, onProgress }).then(
      (value) => setLoading({ state: 'ready', value, isRefreshing: false }),
      (error: unknown) => {
        if (!stop.signal.aborted)
          setLoading((now) =>
            isQuiet && now.state === 'ready' ? now : { state: 'failed', failure: asFailure(error) },
          );
      },
    );
    return () => stop.abort();
  }, [question, revision]);
  return loading;
}

export function asFailure(error: unknown): Failure {
  return error instanceof Failure
    ? error
    : new Failure(String(error instanceof Error ? error.message : error), null, 0);
}

/** Rows by column name. */
export function records<T = Record<string, Cell>>(answer: TableAnswer): T[] {
  const names = answer.columns.map((column) => column.name);
  return answer.rows.map(
    (row) => Object.fromEntries(names.map((name, at) => [name, row[at]])) as T,
  );
}
