/** Above the timeline: search, which tracks, the view, and the way out to other tools. */

import { useState } from 'preact/hooks';
import { address, asFailure, getBytes, hasServer, ofRun, type Progress } from '../api';
import { t } from '../i18n';
import * as units from '../units';
import { openInPerfetto } from './perfetto';
import type { TimelineState } from './state';

export function Toolbar({ state }: { state: TimelineState }) {
  const view = state.calmView.value;
  return (
    <div class="tl-toolbar">
      <Search state={state} />
      <input
        class="tl-filter"
        value={state.filter.value}
        placeholder={t('timeline.filter')}
        aria-label={t('timeline.filter')}
        onInput={(event) => {
          state.filter.value = event.currentTarget.value;
        }}
      />
      <span class="tl-span" aria-live="off">
        {units.duration(view.t1 - view.t0)}
      </span>
      <button type="button" onClick={() => state.jump(state.limits)} title="0">
        {t('timeline.whole')}
      </button>
      <button type="button" onClick={() => state.back()} title="Backspace">
        {t('timeline.back')}
      </button>
      <Live state={state} />
      <span class="tl-gap" />
      {hasServer() && <Perfetto state={state} />}
      {hasServer() && (
        <a
          class="button"
          href={address(ofRun(state.run, 'timeline/export'))}
          download
          title={t('timeline.downloadAbout')}
        >
          {t('timeline.download')}
        </a>
      )}
    </div>
  );
}

function Search({ state }: { state: TimelineState }) {
  const [typed, setTyped] = useState<string | null>(null);
  const found = state.found.value;
  const hit = state.hit.value;
  const text = typed ?? state.query.value;
  const search = async (next: string) => {
    setTyped(null);
    if (next !== state.query.value) await state.search(next);
  };
  return (
    <form
      class="tl-search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        void search(text).then(() => state.nextHit('next'));
      }}
    >
      <input
        type="search"
        value={text}
        placeholder={t('timeline.search')}
        aria-label={t('timeline.search')}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onChange={(event) => void search(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && event.shiftKey) {
            event.preventDefault();
            void search(text).then(() => state.nextHit('previous'));
          }
          if (event.key === 'Escape') {
            setTyped('');
            void search('');
            event.currentTarget.blur();
          }
        }}
      />
      <output class="small dim">
        {state.query.value === '' || found === null
          ? ''
          : hit === null
            ? t('timeline.hits', { total: units.count(found.total) })
            : t('timeline.hitOf', {
                number: units.count(hit.number),
                total: units.count(hit.total),
              })}
      </output>
      <button
        type="button"
        class="quiet"
        disabled={!found?.total}
        aria-label={t('timeline.previousHit')}
        title={t('timeline.previousHit')}
        onClick={() => void state.nextHit('previous')}
      >
        ‹
      </button>
      <button
        type="button"
        class="quiet"
        disabled={!found?.total}
        aria-label={t('timeline.nextHit')}
        title={t('timeline.nextHit')}
        onClick={() => void state.nextHit('next')}
      >
        ›
      </button>
    </form>
  );
}

/** That the run goes on, and the way to its end where that is out of sight. */
function Live({ state }: { state: TimelineState }) {
  if (state.hasNew.value && state.calmView.value.t1 < state.meta.end_ns) {
    return (
      <button
        type="button"
        class="tl-new"
        title={t('timeline.newDataAbout')}
        onClick={() => state.toEnd()}
      >
        {t('timeline.newData')} →
      </button>
    );
  }
  return state.isLive.value ? (
    <span class="tl-live small" title={t('timeline.liveAbout')}>
      {t('timeline.live')}
    </span>
  ) : null;
}

function Perfetto({ state }: { state: TimelineState }) {
  const [progress, setProgress] = useState<Progress | null>(null);
  const open = async () => {
    setProgress({});
    try {
      await openInPerfetto(state.run, () =>
        getBytes(ofRun(state.run, 'timeline/export'), {}, { onProgress: setProgress }),
      );
    } catch (error) {
      state.failure.value = asFailure(error);
    }
    setProgress(null);
  };
  return (
    <button
      type="button"
      disabled={progress !== null}
      title={t('timeline.perfettoAbout')}
      onClick={() => void open()}
    >
      {progress === null ? t('timeline.perfetto') : t('timeline.perfettoWaits')}
    </button>
  );
}
