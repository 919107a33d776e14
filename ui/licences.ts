import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Plugin } from 'vite';

/** Writes the licences of all packages that ended up in the bundle into one text file of it. */
export function licences(fileName: string): Plugin {
  return {
    name: 'licences',
    generateBundle(_options, bundle) {
      const folders = new Set<string>();
      for (const part of Object.values(bundle)) {
        if (part.type !== 'chunk') continue;
        for (const id of part.moduleIds) {
          const folder = packageFolder(id);
          if (folder !== null) folders.add(folder);
        }
      }
      const source = [...folders]
        .sort()
        .map(notice)
        .join('\n' + '-'.repeat(80) + '\n\n');
      this.emitFile({ type: 'asset', fileName, source });
    },
  };
}

function packageFolder(moduleId: string): string | null {
  if (!moduleId.includes('/node_modules/')) return null;
  let folder = dirname(moduleId.split('?')[0]!.replace(/^\0/, ''));
  while (!isPackage(join(folder, 'package.json'))) {
    if (folder === dirname(folder)) return null;
    folder = dirname(folder);
  }
  return folder;
}

/** Some packages hold nameless package.json files that only set the module type. */
function isPackage(path: string): boolean {
  return existsSync(path) && 'version' in JSON.parse(readFileSync(path, 'utf8'));
}

function notice(folder: string): string {
  const about = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const texts = readdirSync(folder)
    .filter((name) => /^(licen[cs]e|notice)/i.test(name) && !name.endsWith('/'))
    .sort()
    .map((name) => readFileSync(join(folder, name), 'utf8').trim());
  return `${about.name} ${about.version} (${about.license})\n\n${texts.join('\n\n')}\n`;
}
