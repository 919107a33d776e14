/** Selected rows as the text of a file. */

import type { Selected } from './select';

export function asCsv({ columns, rows }: Selected): string {
  const lines = [columns.map((column) => column.name), ...rows];
  return lines.map((line) => line.map(quoted).join(',')).join('\n') + '\n';
}

export function asJson({ columns, rows }: Selected): string {
  return JSON.stringify({ ok: true, columns, rows }, null, 1);
}

function quoted(value: unknown): string {
  const text = value === null || value === undefined ? '' : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
