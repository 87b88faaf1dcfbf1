import { findElement } from '../shell/find-element.ts';
import type { RefusedFileView } from './system-status.ts';
import type { TableOptions } from './table.ts';

/** The table of files that models are served without, with reasons; the section is hidden if there are none. */
export function refusedFilesTable(): TableOptions<RefusedFileView> {
  return {
    name: 'refused',
    itemsOf({ refused_files: files }) {
      findElement(document, '#refused-section', HTMLElement).hidden = files.length === 0;
      return files;
    },
    keyOf: ({ model, file }) => `${model} ${file}`,
    nameOf: ({ file }) => file,
    wordsOf: ({ model, file, reason }) => ({ model, file, reason }),
    actions: {},
  };
}
