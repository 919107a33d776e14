/** Light or dark: what the system prefers, unless the user chose. */

import { effect, signal } from '@preact/signals';

export type Theme = 'light' | 'dark';
const KEPT_AS = 'strobe.theme';
const prefersDark = matchMedia('(prefers-color-scheme: dark)');

export const theme = signal<Theme>(chosen() ?? preferred());

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});

prefersDark.addEventListener('change', () => {
  if (chosen() === null) theme.value = preferred();
});

export function setTheme(next: Theme): void {
  theme.value = next;
  localStorage.setItem(KEPT_AS, next);
}

/** The value of a variable of theme.css, for canvases. Reads `theme` so that who draws with it is told of a change. */
export function token(name: `--${string}`): string {
  void theme.value;
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function preferred(): Theme {
  return prefersDark.matches ? 'dark' : 'light';
}

function chosen(): Theme | null {
  const kept = new URLSearchParams(location.search).get('theme') ?? localStorage.getItem(KEPT_AS);
  return kept === 'light' || kept === 'dark' ? kept : null;
}
