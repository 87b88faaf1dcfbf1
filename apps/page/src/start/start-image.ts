import type { ImageModel, ImageRequest } from '@darkroom/client';
import { setField } from '../image/model-fields.ts';
import { errorWords } from '../server/error-words.ts';
import { announce } from '../shell/announce.ts';
import { findElement, partOf } from '../shell/find-element.ts';
import { listenForFiles } from '../shell/listen-for-files.ts';
import { drawMarks, maskFile, maskOfFile, paintedShare, prepareCanvas } from './mask-drawing.ts';
import { blankHistory, type MaskHistory, withMark } from './mask-history.ts';
import { MaskPainter } from './mask-painter.ts';
import { readImageFile, type StartFile } from './read-image-file.ts';
import { sizeLike } from './size-like.ts';

/** The input image in the form. */
interface ChosenImage extends StartFile {
  name: string;
  url: string;
  history: MaskHistory;
  /** Undefined if nothing is painted. */
  mask: Promise<Blob | undefined>;
}

/** The next request's input image and its mask. They stay in this page until they are sent. */
export class StartImage {
  readonly #form: HTMLFormElement;
  readonly #field: HTMLFieldSetElement;
  readonly #painter = new MaskPainter();
  #model: ImageModel | undefined;
  #chosen: ChosenImage | undefined;
  /** Number of the latest action: reading takes time, and only the latest counts. */
  #actionCount = 0;

  constructor(form: HTMLFormElement) {
    this.#form = form;
    this.#field = findElement(form, '#image', HTMLFieldSetElement);
    const buttons = ['choose', 'replace'].map((name) => partOf(this.#field, name, HTMLButtonElement));
    const chooser = partOf(this.#field, 'file', HTMLInputElement);
    listenForFiles({ place: this.#field, buttons, chooser }, (file) => void this.choose(file));
    partOf(this.#field, 'remove', HTMLButtonElement).addEventListener('click', () => {
      this.clear();
      setField(this.#form, 'strength', '');
      partOf(this.#field, 'choose', HTMLButtonElement).focus();
    });
    partOf(this.#field, 'paint', HTMLButtonElement).addEventListener('click', () => this.#paint());
    partOf(this.#field, 'stage', HTMLElement).addEventListener('click', () => this.#paint());
    findElement(form, '#strength', HTMLInputElement).addEventListener('input', () => this.#showStrength());
  }

  /** @param isChosen the form has been filled with the model's default size. */
  showModel(model: ImageModel, isChosen: boolean): void {
    this.#model = model;
    this.#field.hidden = this.#field.disabled = !this.#takes('image');
    partOf(this.#field, 'paint', HTMLButtonElement).hidden = !this.#takes('mask');
    if (isChosen) this.#fitSize();
    this.#show();
  }

  /** True if the chosen model starts from images. */
  get isPossible(): boolean {
    return this.#takes('image');
  }

  /** Returns the parts that the chosen model takes. */
  async read(): Promise<Pick<ImageRequest, 'image' | 'mask'>> {
    if (this.#chosen === undefined || !this.#takes('image')) return {};
    const mask = this.#takes('mask') ? await this.#chosen.mask : undefined;
    return { image: this.#chosen.file, ...(mask !== undefined && { mask }) };
  }

  clear(): void {
    this.#actionCount++;
    this.#set(undefined);
  }

  /** Loads another request's input image and mask, if they are still available. */
  async fill(readInput: (name: 'image' | 'mask') => Promise<Blob | undefined>): Promise<void> {
    const action = ++this.#actionCount;
    this.#showHint('Loading the input image…');
    try {
      const [image, mask] = await Promise.all([readInput('image'), readInput('mask')]);
      const start = image && (await readImageFile(image));
      const history = mask === undefined ? blankHistory : await historyOfFile(mask);
      if (action !== this.#actionCount) return;
      if (start === undefined) return this.#showHint('The input image is no longer stored.');
      this.#set({ ...start, name: image instanceof File ? image.name : 'as before', history });
    } catch (error) {
      if (action === this.#actionCount) this.#showHint(errorWords(error));
    }
  }

  /** Reads a file to start from. */
  async choose(file: File): Promise<void> {
    const action = ++this.#actionCount;
    const start = await readImageFile(file);
    if (action !== this.#actionCount) return;
    if (start === undefined) return this.#showHint(`${file.name} is not an image that this browser can read.`);
    this.#set({ ...start, name: file.name, history: blankHistory });
    this.#fitSize();
    announce(`The next image starts from ${file.name}`);
  }

  #set(chosen: Omit<ChosenImage, 'url' | 'mask'> | undefined): void {
    if (this.#chosen !== undefined) URL.revokeObjectURL(this.#chosen.url);
    this.#chosen = chosen && { ...chosen, url: URL.createObjectURL(chosen.file), mask: Promise.resolve(undefined) };
    if (this.#chosen !== undefined) {
      partOf(this.#field, 'image', HTMLImageElement).src = this.#chosen.url;
      prepareCanvas(partOf(this.#field, 'mask', HTMLCanvasElement), this.#chosen);
      this.#keepMask(this.#chosen, this.#chosen.history);
    }
    this.#showHint('');
    this.#show();
  }

  #paint(): void {
    const chosen = this.#chosen;
    if (chosen !== undefined && this.#takes('mask'))
      this.#painter.open(chosen, chosen.history, (history) => {
        this.#keepMask(chosen, history);
        this.#show();
      });
  }

  #keepMask(chosen: ChosenImage, history: MaskHistory): void {
    const canvas = partOf(this.#field, 'mask', HTMLCanvasElement);
    chosen.history = history;
    drawMarks(canvas, chosen, history.done);
    const isPainted = paintedShare(canvas) > 0;
    chosen.mask = isPainted ? maskFile(chosen, history.done) : Promise.resolve(undefined);
    this.#field.toggleAttribute('data-painted', isPainted);
  }

  #fitSize(): void {
    if (this.#chosen === undefined || this.#model === undefined || !this.#takes('image')) return;
    const size = sizeLike(this.#chosen, this.#model);
    for (const [name, pixels] of Object.entries(size)) setField(this.#form, name, String(pixels));
  }

  #show(): void {
    const chosen = this.#chosen;
    partOf(this.#field, 'empty', HTMLElement).hidden = chosen !== undefined;
    partOf(this.#field, 'chosen', HTMLElement).hidden = chosen === undefined;
    if (chosen === undefined) return;
    const isPainted = this.#isPainted;
    partOf(this.#field, 'name', HTMLElement).textContent = chosen.name;
    partOf(this.#field, 'about', HTMLElement).textContent =
      `${chosen.width} × ${chosen.height}, ${isPainted ? 'the painted area is redrawn' : 'all of it is redrawn'}`;
    partOf(this.#field, 'paint', HTMLButtonElement).textContent = isPainted ? 'Change the mask' : 'Paint a mask';
    this.#showStrength();
  }

  /** Shows the API's default in an empty field; it depends on the mask. */
  #showStrength(): void {
    const number = findElement(this.#form, '#strength', HTMLInputElement);
    number.placeholder = this.#isPainted ? '1' : '0.8';
    if (number.value === '')
      findElement(this.#form, '[data-dial=strength]', HTMLInputElement).value = number.placeholder;
  }

  get #isPainted(): boolean {
    return this.#takes('mask') && this.#field.hasAttribute('data-painted');
  }

  #takes(what: 'image' | 'mask'): boolean {
    return this.#model?.takes?.includes(what) === true;
  }

  #showHint(words: string): void {
    partOf(this.#field, 'hint', HTMLElement).textContent = words;
  }
}

/** Returns a history that starts with an existing mask. */
async function historyOfFile(mask: Blob): Promise<MaskHistory> {
  return withMark(blankHistory, { kind: 'given', mask: maskOfFile(await createImageBitmap(mask)) });
}
