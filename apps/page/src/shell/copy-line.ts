import { findElement } from './find-element.ts';

/**
 * Copies a line to the clipboard; returns true if that worked. Otherwise (such as on plain HTTP) shows it for copying
 * by hand.
 */
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
