import type { ComponentChildren } from 'preact';
import type { Failure, Loading, Progress } from '../api';
import { t } from '../i18n';
import * as units from '../units';
import { sentence } from './words';

/** What a question came to: its answer, the progress towards it, or the reason why there is none. */
export function Loaded<T>({
  of,
  children,
}: {
  of: Loading<T>;
  children: (value: T) => ComponentChildren;
}) {
  if (of.state === 'failed') return <FailureNote failure={of.failure} />;
  if (of.state === 'loading') return <ProgressNote progress={of.progress} />;
  return (
    <div class={of.isRefreshing ? 'loaded is-refreshing' : 'loaded'} aria-busy={of.isRefreshing}>
      {children(of.value)}
    </div>
  );
}

export function FailureNote({ failure }: { failure: Failure }) {
  return (
    <div class="note note-bad" role="alert">
      <strong>{sentence(failure.message)}</strong>
      {failure.hint !== null && <p>{failure.hint}</p>}
    </div>
  );
}

export function ProgressNote({ progress }: { progress: Progress | null }) {
  const isMeasured = progress?.done !== undefined && progress.of !== undefined && progress.of > 0;
  return (
    <div class="progress" role="status">
      <span>{t('shell.loading')}</span>
      {isMeasured ? (
        <progress value={progress.done} max={progress.of} aria-label={t('shell.loading')} />
      ) : (
        <progress aria-label={t('shell.loading')} />
      )}
      {progress?.seconds !== undefined && progress.seconds >= 2 && (
        <span class="dim">{units.duration(progress.seconds * 1e9)}</span>
      )}
    </div>
  );
}

/** Something the run does not have: why, and the command that would record it. */
export function Missing({ why, command }: { why: string; command?: string }) {
  return (
    <div class="note missing">
      <p>{why}</p>
      {command !== undefined && <Command text={command} />}
    </div>
  );
}

/** A command to type, with a button that copies it. */
export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <button type="button" class="quiet" onClick={() => void navigator.clipboard?.writeText(text)}>
        {t('shell.copy')}
      </button>
    </div>
  );
}
