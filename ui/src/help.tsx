/** The keys that work now, over the page. */

import { useEffect, useRef } from 'preact/hooks';
import { signal } from '@preact/signals';
import { t } from './i18n';
import { groups, type Shortcut } from './keys';

export const isHelpOpen = signal(false);

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const isOpen = isHelpOpen.value;
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  return (
    <dialog
      ref={dialog}
      class="help"
      aria-labelledby="help-title"
      onClose={() => (isHelpOpen.value = false)}
    >
      <header>
        <h2 id="help-title">{t('shell.help')}</h2>
        <button type="button" onClick={() => (isHelpOpen.value = false)}>
          {t('shell.close')}
        </button>
      </header>
      <div class="help-groups">
        {groups.value.map((group) => (
          <section key={group.title}>
            <h3>{t(group.title)}</h3>
            <dl>
              {merged(group.shortcuts).map(([does, keys]) => (
                <div key={does}>
                  <dt>
                    {keys.map((key) => (
                      <kbd key={key}>{key}</kbd>
                    ))}
                  </dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <p class="dim">{t('shell.address')}</p>
    </dialog>
  );
}

/** Keys that do the same stand in one line. */
function merged(shortcuts: readonly Shortcut[]): [string, string[]][] {
  const lines = new Map<string, string[]>();
  for (const shortcut of shortcuts) {
    const does = t(shortcut.does);
    lines.set(does, [...(lines.get(does) ?? []), glyph(shortcut)]);
  }
  return [...lines];
}

function glyph({ code, shift, control, shown }: Shortcut): string {
  const name =
    shown ??
    code
      .replace(/^(Key|Digit)/, '')
      .replace(
        /^Arrow(Left|Right|Up|Down)$/,
        (_, way: string) => ({ Left: '←', Right: '→', Up: '↑', Down: '↓' })[way]!,
      );
  return [control && 'Ctrl', shift && 'Shift', name].filter(Boolean).join(' + ');
}
