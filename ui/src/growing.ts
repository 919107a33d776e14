/** A run that still goes on: tells when there is something new to ask for. */

import { effect, signal, type Signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { get, ofRun } from './api';

interface LiveAnswer {
  readonly is_live: boolean;
  /** Steps that came since. */
  readonly new: number;
  readonly cursor: string;
  /** Names what tables are answered from; the run is read anew only every few seconds. */
  readonly content: string;
}

export interface Growing {
  readonly isLive: boolean;
  /** Grows whenever there is something new. */
  readonly revision: number;
}

const NOT_GROWING: Growing = { isLive: false, revision: 0 };
/** Between two questions; the server holds the next one back until there is something new. */
const PAUSE_MS = 2000;
/** Tables are worked out anew for it, which the server does every five seconds at most. */
const TABLES_MS = 5000;

interface Followed {
  readonly growing: Signal<Growing>;
  readonly stop: AbortController;
  watchers: number;
}

/** One question at a time for each run, however many tables of it are in sight. */
const followed = new Map<string, Followed>();

/** `every_ms`: pages are drawn anew at most this often; slow ones less often. */
export function useGrowing(run: string, every_ms = TABLES_MS): Growing {
  const [growing, setGrowing] = useState<Growing>(
    () => followed.get(run)?.growing.peek() ?? NOT_GROWING,
  );
  useEffect(() => watch(run, every_ms, setGrowing), [run]);
  return growing;
}

/** Returns how to stop. */
function watch(run: string, every_ms: number, tell: (growing: Growing) => void): () => void {
  const one = followed.get(run) ?? begun(run);
  one.watchers++;
  let told = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = effect(() => {
    const growing = one.growing.value;
    clearTimeout(timer);
    if (growing === NOT_GROWING) return;
    timer = setTimeout(
      () => {
        told = performance.now();
        tell(growing);
      },
      told === 0 ? 0 : Math.max(0, told + every_ms - performance.now()),
    );
  });
  return () => {
    stop();
    clearTimeout(timer);
    if (--one.watchers > 0) return;
    one.stop.abort();
    followed.delete(run);
  };
}

function begun(run: string): Followed {
  const one: Followed = { growing: signal(NOT_GROWING), stop: new AbortController(), watchers: 0 };
  followed.set(run, one);
  void follow(run, one);
  return one;
}

async function follow(
  run: string,
  { growing, stop: { signal: stopped } }: Followed,
): Promise<void> {
  let since = '';
  // What tables were answered from when the newest steps came: maybe not yet from these.
  let content: string | null = null;
  while (!stopped.aborted) {
    let answer: LiveAnswer;
    try {
      answer = await get<LiveAnswer>(
        ofRun(run, 'live'),
        { since, content, rows: 'no' },
        { signal: stopped },
      );
    } catch {
      // An exported file, or a run without a journal, does not grow; the page says what else is wrong.
      return;
    }
    const { isLive, revision } = growing.peek();
    const isFirst = since === '';
    const isOther = content !== null && content !== answer.content;
    // A run that ends is told as well: what was recorded last is read then.
    if (answer.is_live !== isLive || (!isFirst && (answer.new > 0 || isOther)))
      growing.value = { isLive: answer.is_live, revision: revision + (isFirst ? 0 : 1) };
    if (answer.new > 0) content = answer.content;
    else if (isOther) content = null;
    if (!answer.is_live) return;
    since = answer.cursor;
    await pause();
  }
}

/** Nobody sees a page in the background: it need not take time from the training. */
async function pause(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  if (document.hidden)
    await new Promise((resolve) =>
      document.addEventListener('visibilitychange', resolve, { once: true }),
    );
}
