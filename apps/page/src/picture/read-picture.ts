import { type PictureRequest, readMetadata } from '@darkroom/client';
import { findElement } from '../shell/find-element.ts';
import { listenForFiles } from '../shell/listen-for-files.ts';

/** A larger file is none that anybody made here. */
const maxFileBytes = 128e6;

/**
 * Reads what made a picture that is dropped on the sheet with the form, or chosen by the button in it. The file stays in this browser.
 *
 * @param onRead fills the form, and returns what of it could not be.
 */
export function createPictureReader(sheet: HTMLElement, onRead: (made: Partial<PictureRequest>) => string | undefined) {
  const button = findElement(sheet, '#choose-picture', HTMLButtonElement);
  const chooser = findElement(sheet, '#picture-file', HTMLInputElement);
  const hint = findElement(sheet, '#picture-hint', HTMLParagraphElement);
  const say = (words: string): void => {
    hint.textContent = words;
    hint.hidden = false;
  };
  const read = async (file: File): Promise<void> => {
    const made = file.size > maxFileBytes ? undefined : readMetadata(new Uint8Array(await file.arrayBuffer()));
    if (made === undefined) return say(`${file.name} does not say how it was made.`);
    const missing = onRead(made);
    say(missing === undefined ? `Filled in from ${file.name}.` : `Filled in from ${file.name}, but for ${missing}.`);
  };
  // A file may be gone, or may not be read, by the time that it is to be.
  const tryToRead = (file: File): void => void read(file).catch(() => say(`${file.name} cannot be read.`));
  listenForFiles({ place: sheet, buttons: [button], chooser }, tryToRead);
}
