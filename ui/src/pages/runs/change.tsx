/** The dialogs that change a run: rename, tags, delete. Nothing changes without a click that says so. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { asFailure, ofRun, post, type Failure } from '../../api';
import { FailureNote } from '../../components/loaded';
import { t } from '../../i18n';
import type { ListedRun } from './run';

interface Props {
  readonly run: ListedRun;
  /** Called when the dialog is over, and whether something was changed. */
  readonly onDone: (isChanged: boolean) => void;
}

export function ChangeRun({ run, onDone }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const change = (what: string, body: unknown) => {
    post(ofRun(run.id, what), body).then(
      () => onDone(true),
      (error) => setFailure(asFailure(error)),
    );
  };
  return (
    <dialog
      ref={dialog}
      class="change-run"
      aria-labelledby="change-title"
      onClose={() => onDone(false)}
    >
      <header>
        <h2 id="change-title" class="mono">
          {run.name}
        </h2>
      </header>
      {failure !== null && <FailureNote failure={failure} />}
      <OneField
        label={t('runs.newName')}
        button={t('runs.rename')}
        initial={run.name}
        onSave={(name) => change('rename', { name })}
      />
      <OneField
        label={`${t('runs.tags')}: ${t('runs.tagsHow')}`}
        button={t('runs.save')}
        initial={run.tags.join(', ')}
        onSave={(text) => change('tags', { tags: tagsOf(text) })}
      />
      <OneField
        label={t('runs.deleteHow')}
        button={t('runs.delete')}
        initial=""
        isDanger
        isAllowed={(text) => text === run.name}
        onSave={(confirm) => change('delete', { confirm })}
      />
      <footer>
        <button type="button" onClick={() => dialog.current?.close()}>
          {t('runs.cancel')}
        </button>
      </footer>
    </dialog>
  );
}

interface FieldProps {
  readonly label: string;
  readonly button: string;
  readonly initial: string;
  readonly isDanger?: boolean;
  readonly isAllowed?: (text: string) => boolean;
  readonly onSave: (text: string) => void;
}

function OneField({ label, button, initial, isDanger = false, isAllowed, onSave }: FieldProps) {
  const [text, setText] = useState(initial);
  const isReady = isAllowed === undefined ? text !== initial : isAllowed(text);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) onSave(text);
      }}
    >
      <label>
        <span>{label}</span>
        <input
          type="text"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          autocomplete="off"
          spellcheck={false}
        />
      </label>
      <button type="submit" class={isDanger ? 'danger' : undefined} disabled={!isReady}>
        {button}
      </button>
    </form>
  );
}

function tagsOf(text: string): string[] {
  return [
    ...new Set(
      text
        .split(',')
        .map((tag) => tag.trim())
        .filter(Boolean),
    ),
  ];
}
