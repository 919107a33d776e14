/** The timeline of a run: every event of every rank, thread and stream, at any zoom. */

import { effect } from '@preact/signals';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { Failure, asFailure, get, ofRun, type Progress } from '../api';
import { FailureNote, Missing, ProgressNote } from '../components/loaded';
import { t } from '../i18n';
import { useGrowing } from '../growing';
import { useShortcuts } from '../keys';
import { route } from '../router';
import * as units from '../units';
import { Drawer } from './drawer';
import { shortcuts } from './keyboard';
import { Lanes } from './lanes';
import { Overview } from './overview';
import { Ruler } from './ruler';
import { TimelineState } from './state';
import { Stretches } from './stretches';
import './timeline.css';
import { Toolbar } from './toolbar';
import { Tooltip } from './tooltip';
import type { Meta } from './types';

export function Timeline({ run }: { run: string }) {
  const [meta, setMeta] = useState<Meta | null>(null);
  const [progress, setProgress] = useState<Progress | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [attempt, setAttempt] = useState(0);
  const { revision } = useGrowing(run);
  useEffect(() => {
    const stop = new AbortController();
    opened(run, stop.signal, setProgress).then(
      (found) => {
        setMeta(found);
        setFailure(null);
      },
      (error: unknown) => {
        if (!stop.signal.aborted) setFailure(asFailure(error));
      },
    );
    return () => stop.abort();
  }, [run, attempt]);
  // A training that has only begun has nothing to show yet.
  useEffect(() => {
    if (revision > 0 && (failure !== null || meta?.events === 0)) setAttempt((last) => last + 1);
  }, [revision]);
  if (failure !== null) return <FailureNote failure={failure} />;
  if (meta === null) return <ProgressNote progress={progress} />;
  if (meta.events === 0)
    return (
      <div class="page">
        <Missing why={t('timeline.empty')} command="strobe run train.py" />
      </div>
    );
  return <Opened run={run} meta={meta} />;
}

/** What there is to see; the index is made first where there is none, which takes a second for a million events. */
async function opened(
  run: string,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<Meta> {
  const meta = await get<Meta>(ofRun(run, 'timeline'), {}, { signal });
  if (meta.ready) return meta;
  await get(ofRun(run, 'timeline/index'), {}, { signal, onProgress });
  const again = await get<Meta>(ofRun(run, 'timeline'), {}, { signal });
  // Only a run whose files somebody changes: of one that is being recorded there is an index now.
  if (!again.ready) throw new Failure(t('timeline.grew'), t('timeline.grewHint'), 0);
  return again;
}

function Opened({ run, meta }: { run: string; meta: Meta }) {
  const state = useMemo(() => new TimelineState(run, meta), [run, meta]);
  useEffect(() => {
    const stopWriting = effect(() => state.write());
    const stopCalming = effect(() => state.calm());
    const stopFollowing = effect(() => state.follow(route.value.query));
    return () => {
      stopWriting();
      stopFollowing();
      stopCalming();
      state.close();
    };
  }, [state]);
  const keys = useMemo(() => shortcuts(state), [state]);
  useShortcuts('timeline.title', keys.shortcuts);
  useEffect(() => keys.listen(), [keys]);
  const growing = useGrowing(run);
  useEffect(() => {
    if (growing.isLive || growing.revision > 0) void state.growth.grow();
  }, [state, growing]);
  const { pinned, lanes } = state.layout.value;
  return (
    <div class="tl">
      <h1 class="hidden">{t('timeline.title')}</h1>
      <Toolbar state={state} />
      {state.failure.value !== null && <FailureNote failure={state.failure.value} />}
      <Stretches state={state} />
      <Overview state={state} />
      <Ruler state={state} />
      {pinned.length > 0 && (
        <Lanes state={state} lanes={pinned} label={t('timeline.pinned')} isPinned />
      )}
      {lanes.length === 0 && pinned.length === 0 && (
        <p class="dim tl-empty">{t('timeline.noTracks', { text: state.filter.value })}</p>
      )}
      <Lanes state={state} lanes={lanes} label={t('timeline.tracks')} />
      <p id="tl-keys" class="hidden">
        {t('timeline.keysAbout')}
      </p>
      <Announcement state={state} />
      <Drawer state={state} />
      <Tooltip state={state} />
    </div>
  );
}

/** For screen readers: what was selected. */
function Announcement({ state }: { state: TimelineState }) {
  const event = state.selected.value?.event;
  return (
    <p class="hidden" aria-live="polite">
      {event === undefined
        ? ''
        : `${event.name}, ${event.kind}, ${units.duration(event.dur_ns)}, ${units.moment(event.ts_ns)}`}
    </p>
  );
}
