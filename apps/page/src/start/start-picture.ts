import type { PictureModel, PictureRequest } from '@darkroom/client';
import { setField } from '../picture/model-fields.ts';
import { errorWords } from '../server/error-words.ts';
import { announce } from '../shell/announce.ts';
import { findElement, partOf } from '../shell/find-element.ts';
import { listenForFiles } from '../shell/listen-for-files.ts';
import { drawMarks, maskFile, maskOfFile, paintedShare, prepareCanvas } from './mask-drawing.ts';
import { blankHistory, type MaskHistory, withMark } from './mask-history.ts';
import { MaskPainter } from './mask-painter.ts';
import { readPictureFile, type StartFile } from './read-picture-file.ts';
import { sizeLike } from './size-like.ts';

/** A picture that is in the form. */
interface ChosenPicture extends StartFile {
  name: string;
  url: string;
  history: MaskHistory;
  /** Undefined when nothing is painted. */
  mask: Promise<Blob | undefined>;
}

/** The picture that the next request begins with, and where to paint it anew. It stays in this page until it is sent. */
export class StartPicture {
  readonly #form: HTMLFormElement;
  readonly #field: HTMLFieldSetElement;
  readonly #painter = new MaskPainter();
  #model: PictureModel | undefined;
  #chosen: ChosenPicture | undefined;
  /** Counts what was asked for, since reading takes time: only the last counts. */
  #asked = 0;

  constructor(form: HTMLFormElement) {
    this.#form = form;
    this.#field = findElement(form, '#image', HTMLFieldSetElement);
    const buttons = ['choose', 'replace'].map((name) => partOf(this.#field, name, HTMLButtonElement));
    const chooser = partOf(this.#field, 'file', HTMLInputElement);
    listenForFiles({ place: this.#field, buttons, chooser }, (file) => void this.#take(file));
    partOf(this.#field, 'remove', HTMLButtonElement).addEventListener('click', () => {
      this.clear();
      setField(this.#form, 'strength', '');
      partOf(this.#field, 'choose', HTMLButtonElement).focus();
    });
    partOf(this.#field, 'paint', HTMLButtonElement).addEventListener('click', () => this.#paint());
    partOf(this.#field, 'stage', HTMLElement).addEventListener('click', () => this.#paint());
    findElement(form, '#strength', HTMLInputElement).addEventListener('input', () => this.#showStrength());
  }

  /** @param isChosen the form has got the model's own size. */
  showModel(model: PictureModel, isChosen: boolean): void {
    this.#model = model;
    this.#field.hidden = this.#field.disabled = !this.#takes('image');
    partOf(this.#field, 'paint', HTMLButtonElement).hidden = !this.#takes('mask');
    if (isChosen) this.#fitSize();
    this.#show();
  }

  /** What of it the chosen model takes. */
  async read(): Promise<Pick<PictureRequest, 'image' | 'mask'>> {
    if (this.#chosen === undefined || !this.#takes('image')) return {};
    const mask = this.#takes('mask') ? await this.#chosen.mask : undefined;
    return { image: this.#chosen.file, ...(mask !== undefined && { mask }) };
  }

  clear(): void {
    this.#asked++;
    this.#set(undefined);
  }

  /** With what another request began with, if it can still be had. */
  async fill(readInput: (name: 'image' | 'mask') => Promise<Blob | undefined>): Promise<void> {
    const asked = ++this.#asked;
    this.#say('looking for the picture that it began with…');
    try {
      const [image, mask] = await Promise.all([readInput('image'), readInput('mask')]);
      const start = image && (await readPictureFile(image));
      const history = mask === undefined ? blankHistory : await historyOfFile(mask);
      if (asked !== this.#asked) return;
      if (start === undefined) return this.#say('The picture that it began with is not kept any more.');
      this.#set({ ...start, name: image instanceof File ? image.name : 'as before', history });
    } catch (error) {
      if (asked === this.#asked) this.#say(errorWords(error));
    }
  }

  async #take(file: File): Promise<void> {
    const asked = ++this.#asked;
    const start = await readPictureFile(file);
    if (asked !== this.#asked) return;
    if (start === undefined) return this.#say(`${file.name} is not a picture that this browser knows.`);
    this.#set({ ...start, name: file.name, history: blankHistory });
    this.#fitSize();
    announce(`The next picture starts from ${file.name}`);
  }

  #set(chosen: Omit<ChosenPicture, 'url' | 'mask'> | undefined): void {
    if (this.#chosen !== undefined) URL.revokeObjectURL(this.#chosen.url);
    this.#chosen = chosen && { ...chosen, url: URL.createObjectURL(chosen.file), mask: Promise.resolve(undefined) };
    if (this.#chosen !== undefined) {
      partOf(this.#field, 'image', HTMLImageElement).src = this.#chosen.url;
      prepareCanvas(partOf(this.#field, 'mask', HTMLCanvasElement), this.#chosen);
      this.#keepMask(this.#chosen, this.#chosen.history);
    }
    this.#say('');
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

  #keepMask(chosen: ChosenPicture, history: MaskHistory): void {
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
      `${chosen.width} × ${chosen.height}, ${isPainted ? 'what is painted is drawn anew' : 'all of it is drawn anew'}`;
    partOf(this.#field, 'paint', HTMLButtonElement).textContent = isPainted ? 'Change the mask' : 'Paint a mask';
    this.#showStrength();
  }

  /** An empty field says the API's own, which depends on the mask. */
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

  #say(words: string): void {
    partOf(this.#field, 'hint', HTMLElement).textContent = words;
  }
}

/** A mask that is there already, as the first thing that was done. */
async function historyOfFile(mask: Blob): Promise<MaskHistory> {
  return withMark(blankHistory, { kind: 'given', mask: maskOfFile(await createImageBitmap(mask)) });
}
