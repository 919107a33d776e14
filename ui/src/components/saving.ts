/** All rows of a table as a file: a link to the server, or, in an exported file, the rows it holds. */

import { address, ofRun, type Parameters } from '../api';

export type FileForm = 'csv' | 'json-file';

type Save = (where: string, form: FileForm, name: string) => void;
let saveFromHere: Save | null = null;

/** In an exported file there is no server that a link could point to. */
export function setSave(save: Save): void {
  saveFromHere = save;
}

export function fileLink(run: string, table: string, parameters: Parameters, form: FileForm) {
  const where = address(ofRun(run, `table/${table}`), {
    ...parameters,
    limit: null,
    offset: null,
    format: form,
  });
  const name = `${table}.${form === 'csv' ? 'csv' : 'json'}`;
  return {
    href: where,
    download: name,
    onClick: (event: Event) => {
      if (saveFromHere === null) return;
      event.preventDefault();
      saveFromHere(where, form, name);
    },
  };
}

/** Hands the browser a file that was made here. */
export function saveText(text: string, type: string, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  // The browser has taken it once the click is over.
  setTimeout(() => URL.revokeObjectURL(link.href), 0);
}
