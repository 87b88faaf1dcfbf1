import { findElement } from './find-element.ts';

/** True when it is in the clipboard; where a page may not write there (plain HTTP), it is shown for copying by hand. */
export async function copyLine(line: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(line);
    return true;
  } catch {
    // Refused, or no `clipboard` at all.
    const field = findElement(document, '#line', HTMLTextAreaElement);
    field.value = line;
    findElement(document, '#line-dialog', HTMLDialogElement).showModal();
    field.select();
    return false;
  }
}
