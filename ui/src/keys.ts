/** Keys, by where they lie on the keyboard, so that W A S D are one hand's keys on every layout. */

import { useEffect } from 'preact/hooks';
import { signal } from '@preact/signals';
import type { Key } from './i18n';

export interface Shortcut {
  /** `KeyboardEvent.code` (KeyW, Digit1), or `KeyboardEvent.key` for signs whose place differs (?, /, [). */
  readonly code: string;
  readonly shift?: boolean;
  readonly control?: boolean;
  /** What it does, for the help. */
  readonly does: Key;
  /** What the help shows in place of the code. */
  readonly shown?: string;
  /** Also while a dialog is open, which otherwise keeps all keys to itself. */
  readonly worksInDialogs?: boolean;
  readonly run: (event: KeyboardEvent) => void;
}

export interface ShortcutGroup {
  readonly title: Key;
  readonly shortcuts: readonly Shortcut[];
}

/** All that works now, in the order it came; the help lists it. */
export const groups = signal<readonly ShortcutGroup[]>([]);

/** Keys of a component, as long as it is shown. Later ones win over earlier ones. */
export function useShortcuts(title: Key, shortcuts: readonly Shortcut[]): void {
  useEffect(() => {
    const group = { title, shortcuts };
    groups.value = [...groups.value, group];
    return () => {
      groups.value = groups.value.filter((other) => other !== group);
    };
  }, [title, shortcuts]);
}

addEventListener('keydown', (event) => {
  if (event.defaultPrevented || isTyping(event.target)) return;
  // A dialog covers the page: Escape closes it, and nothing behind it may react.
  const isCovered = document.querySelector('dialog[open]') !== null;
  for (const { shortcuts } of [...groups.value].reverse()) {
    const shortcut = shortcuts.find(
      (candidate) => matches(candidate, event) && (!isCovered || candidate.worksInDialogs),
    );
    if (shortcut === undefined) continue;
    event.preventDefault();
    shortcut.run(event);
    return;
  }
});

function matches(shortcut: Shortcut, event: KeyboardEvent): boolean {
  if ((shortcut.control ?? false) !== (event.ctrlKey || event.metaKey) || event.altKey)
    return false;
  // A sign like ? is what it is, with or without the shift key of this layout.
  if (shortcut.code.length === 1) return event.key === shortcut.code;
  return event.code === shortcut.code && (shortcut.shift ?? false) === event.shiftKey;
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}
