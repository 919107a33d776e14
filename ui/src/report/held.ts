/** What an exported file holds: the answers of the server, packed. */

import type { Cell, Column } from '../api';

export interface HeldTable {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
  /** Rows that the run has of it; the file holds the first of them. */
  readonly total: number;
}

export interface Held {
  /** The name of the run. */
  readonly run: string;
  /** What `/api/runs/<id>/<name>` answers, by name. */
  readonly answers: Readonly<Record<string, unknown>>;
  readonly rules: Readonly<Record<string, unknown>>;
  readonly tables: Readonly<Record<string, HeldTable>>;
}

/** Unpacks the text of a script element: gzipped, in base64. */
export function unpacked(id: string): Response {
  const text = document.getElementById(id)?.textContent ?? '';
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip')));
}
