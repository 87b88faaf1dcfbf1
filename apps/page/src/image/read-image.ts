import { type ImageRequest, readMetadata } from '@darkroom/client';
import { findElement } from '../shell/find-element.ts';
import { listenForFiles } from '../shell/listen-for-files.ts';

/** A larger file is not from Darkroom. */
const maxFileBytes = 128e6;

/**
 * Reads the recipe of an image that is dropped on the form's sheet or chosen with its button. The file stays in this
 * browser.
 *
 * @param onRead fills the form, and returns a description of fields it could not set.
 */
export function createSettingsReader(sheet: HTMLElement, onRead: (made: Partial<ImageRequest>) => string | undefined) {
  const button = findElement(sheet, '#choose-image', HTMLButtonElement);
  const chooser = findElement(sheet, '#image-file', HTMLInputElement);
  const hint = findElement(sheet, '#image-hint', HTMLParagraphElement);
  const showHint = (words: string): void => {
    hint.textContent = words;
    hint.hidden = false;
  };
  const read = async (file: File): Promise<void> => {
    const made = file.size > maxFileBytes ? undefined : readMetadata(new Uint8Array(await file.arrayBuffer()));
    if (made === undefined) return showHint(`${file.name} contains no settings.`);
    const missing = onRead(made);
    showHint(
      missing === undefined ? `Filled in from ${file.name}.` : `Filled in from ${file.name}, except ${missing}.`,
    );
  };
  // Reading fails if the file was deleted or must not be read.
  const tryToRead = (file: File): void => void read(file).catch(() => showHint(`${file.name} cannot be read.`));
  listenForFiles({ place: sheet, buttons: [button], chooser }, tryToRead);
}
