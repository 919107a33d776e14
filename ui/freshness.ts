import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'vite';

/** Notes in the bundle from which sources it was built: tests/test_ui.py works the same sum out anew. */
export function builtFrom(fileName: string): Plugin {
  return {
    name: 'built-from',
    generateBundle() {
      this.emitFile({ type: 'asset', fileName, source: `${sumOfSources(import.meta.dirname)}\n` });
    },
  };
}

function sumOfSources(folder: string): string {
  const sum = createHash('sha256');
  for (const path of sources(folder, '').sort()) {
    sum.update(`${path}\0`);
    sum.update(readFileSync(join(folder, path)));
    sum.update('\0');
  }
  return sum.digest('hex');
}

/** What the pages are not built from. */
const LEFT_OUT = ['node_modules', 'tests'];

/** All files by their paths, but for what is hidden or left out. */
function sources(folder: string, within: string): string[] {
  return readdirSync(join(folder, within), { withFileTypes: true }).flatMap((entry) => {
    const path = within === '' ? entry.name : `${within}/${entry.name}`;
    if (LEFT_OUT.includes(entry.name) || entry.name.startsWith('.')) return [];
    return entry.isDirectory() ? sources(folder, path) : [path];
  });
}
