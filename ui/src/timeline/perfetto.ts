/** Hands the timeline to Perfetto in a window of its own. Only when asked: no other part of the pages leaves the machine. */

import { Failure } from '../api';
import { t } from '../i18n';

const PERFETTO = 'https://ui.perfetto.dev';
/** It answers PING once it is loaded: https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui */
const PING_EVERY_MS = 100;
const PATIENCE_MS = 30_000;

export async function openInPerfetto(
  title: string,
  bytes: () => Promise<ArrayBuffer>,
): Promise<void> {
  // In the click itself, or browsers block it.
  const other = window.open(PERFETTO);
  if (other === null)
    throw new Failure(t('timeline.perfettoBlocked'), t('timeline.perfettoHint'), 0);
  const [buffer] = await Promise.all([bytes(), answered(other)]);
  other.postMessage({ perfetto: { buffer, title, fileName: `${title}.json.gz` } }, PERFETTO);
}

function answered(other: Window): Promise<void> {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const timer = setInterval(() => {
      if (other.closed || performance.now() - began > PATIENCE_MS) {
        stop();
        reject(new Failure(t('timeline.perfettoSilent'), t('timeline.perfettoHint'), 0));
      } else other.postMessage('PING', PERFETTO);
    }, PING_EVERY_MS);
    const onMessage = (event: MessageEvent) => {
      if (event.origin !== PERFETTO || event.data !== 'PONG') return;
      stop();
      resolve();
    };
    const stop = () => {
      clearInterval(timer);
      removeEventListener('message', onMessage);
    };
    addEventListener('message', onMessage);
  });
}
