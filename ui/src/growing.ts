/** A run that still goes on: tells when there are new steps to ask for. */

import { useEffect, useState } from 'preact/hooks';
import { get, ofRun } from './api';

interface LiveAnswer {
  readonly is_live: boolean;
  readonly rows: readonly unknown[];
  readonly cursor: string;
}

export interface Growing {
  readonly isLive: boolean;
  /** Grows whenever there is something new. */
  readonly revision: number;
}

/** `every_ms`: pages are drawn anew at most this often; slow ones less often. */
export function useGrowing(run: string, every_ms = 2000): Growing {
  const [growing, setGrowing] = useState<Growing>({ isLive: false, revision: 0 });
  useEffect(() => {
    const stop = new AbortController();
    void follow(run, every_ms, stop.signal, setGrowing);
    return () => stop.abort();
  }, [run]);
  return growing;
}

async function follow(run: string, every_ms: number, signal: AbortSignal, tell: (growing: Growing) => void): Promise<void> {
  let since = '';
  let revision = 0;
  let isFirst = true;
  while (!signal.aborted) {
    let answer: LiveAnswer;
    try {
      answer = await get<LiveAnswer>(ofRun(run, 'live'), { since }, { signal });
    } catch {
      // An exported file, or a run without a journal, does not grow; the page says what else is wrong.
      return;
    }
    if (!isFirst && answer.rows.length > 0) revision += 1;
    if (isFirst ? answer.is_live : answer.rows.length > 0 || !answer.is_live) tell({ isLive: answer.is_live, revision });
    if (!answer.is_live) return;
    since = answer.cursor;
    isFirst = false;
    await new Promise((resolve) => setTimeout(resolve, every_ms));
  }
}
