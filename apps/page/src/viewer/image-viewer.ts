import type { ImageModel } from '@darkroom/client';
import { createWipe } from '../image/before-after.ts';
import { describeImage } from '../image/descriptions.ts';
import { fileName } from '../image/file-name.ts';
import type { RequestInputs } from '../requests/request-inputs.ts';
import { errorWords } from '../server/error-words.ts';
import type { Session } from '../server/session.ts';
import { showBanner } from '../shell/announce.ts';
import { copyLine } from '../shell/copy-line.ts';
import { findElement, partOf } from '../shell/find-element.ts';
import { detailsOf, upscaleOf, type ViewedImage } from '../requests/viewed-image.ts';
import { createZoom } from './zoom.ts';

export interface ImageViewerOptions {
  session: Session;
  inputs: RequestInputs;
  /** Returns all finished images, in the order in which they are shown. */
  images: () => readonly ViewedImage[];
  /** Returns a model by id; undefined if it is not served. */
  modelOf: (id: string | undefined) => ImageModel | undefined;
  /** Returns the model that describes images; undefined if none is served. */
  imageReader: () => string | undefined;
  /** Returns true if the form can start from an image. */
  canStart: () => boolean;
  /** Actions that close the viewer. */
  actions: Readonly<Record<'start' | 'vary' | 'upscale' | 'use', ViewerAction>>;
}

/** Resolves with a function that moves the focus, which is called when the viewer has closed. */
type ViewerAction = (image: ViewedImage) => Promise<() => void>;

/** The dialog that shows one image large, with its details and what can be done with it. */
export class ImageViewer {
  readonly #options: ImageViewerOptions;
  readonly #dialog = findElement(document, '#viewer', HTMLDialogElement);
  readonly #stage = partOf(this.#dialog, 'stage', HTMLElement);
  readonly #wipe = createWipe(partOf(this.#dialog, 'tile', HTMLElement), 'the image');
  readonly #zoom = createZoom(this.#dialog, this.#stage);
  #shown: ViewedImage | undefined;
  #url = '';
  #description: AbortController | undefined;
  #isRunning = false;

  constructor(options: ImageViewerOptions) {
    this.#options = options;
    const handlers: Record<string, () => void> = {
      close: () => this.#dialog.close(),
      previous: () => this.#move(-1),
      next: () => this.#move(1),
      compare: () => void this.#compare(this.#button('compare').ariaPressed !== 'true'),
      describe: () => void this.#describe(),
      link: () => void this.#copyLink(),
    };
    for (const [name, act] of Object.entries(options.actions)) handlers[name] = () => void this.#run(act);
    for (const [name, act] of Object.entries(handlers)) this.#button(name).addEventListener('click', act);
    this.#dialog.addEventListener('keydown', (event) => this.#onKey(event));
    this.#dialog.addEventListener('close', () => this.#clear());
  }

  /** Opens the image with this position in a request. */
  open(id: string, index: number): void {
    const image = this.#options.images().find((each) => each.entry.id === id && each.index === index);
    if (image === undefined) return;
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#show(image);
    this.#stage.focus();
  }

  #show(image: ViewedImage): void {
    this.#clear();
    this.#shown = image;
    const { entry, file } = image;
    const { prompt, size = '1x1' } = entry.request;
    const [width = 1, height = 1] = size.split('x').map(Number);
    this.#stage.style.setProperty('--ratio', String(width / height));
    this.#zoom.reset();
    this.#url = URL.createObjectURL(file.blob);
    Object.assign(partOf(this.#dialog, 'image', HTMLImageElement), { src: this.#url, alt: prompt });
    const name = fileName(prompt, file.seed, file.blob.type);
    Object.assign(partOf(this.#dialog, 'download', HTMLAnchorElement), { href: this.#url, download: name });
    partOf(this.#dialog, 'prompt', HTMLElement).textContent = prompt;
    partOf(this.#dialog, 'details', HTMLElement).replaceChildren(...detailsOf(image).map(detailElement));
    this.#showActions(image);
  }

  #showActions(image: ViewedImage): void {
    const { images, modelOf, imageReader, canStart } = this.#options;
    const all = images();
    const at = all.findIndex((each) => isSame(each, image));
    partOf(this.#dialog, 'position', HTMLElement).textContent = `${at + 1} of ${all.length}`;
    this.#button('previous').ariaDisabled = at <= 0 ? 'true' : null;
    this.#button('next').ariaDisabled = at === all.length - 1 ? 'true' : null;
    const factor = upscaleOf(image, modelOf(image.entry.request.model));
    this.#button('upscale').textContent = `Upscale ${factor}×`;
    this.#button('upscale').hidden = factor === undefined;
    this.#button('compare').hidden = image.entry.request.image === undefined;
    this.#button('describe').hidden = imageReader() === undefined;
    this.#button('start').hidden = !canStart();
  }

  #move(by: 1 | -1): void {
    const all = this.#options.images();
    const next = all[all.findIndex((each) => this.#shown !== undefined && isSame(each, this.#shown)) + by];
    if (next !== undefined) this.#show(next);
  }

  #onKey(event: KeyboardEvent): void {
    const commands: Record<string, () => void> = {
      ArrowLeft: () => this.#move(-1),
      ArrowRight: () => this.#move(1),
      '+': this.#zoom.zoomIn,
      '=': this.#zoom.zoomIn,
      '-': this.#zoom.zoomOut,
      '0': this.#zoom.reset,
    };
    const isArrow = event.key.startsWith('Arrow');
    // Arrow keys move the slider that has the focus, and scroll an enlarged image.
    if (isArrow && (event.target instanceof HTMLInputElement || this.#zoom.isZoomed())) return;
    const command = event.ctrlKey || event.metaKey || event.altKey ? undefined : commands[event.key];
    if (command === undefined) return;
    event.preventDefault();
    command();
  }

  async #compare(isOn: boolean): Promise<void> {
    const image = this.#shown;
    this.#button('compare').ariaPressed = String(isOn);
    if (!isOn || image === undefined) return this.#wipe.hide();
    try {
      const before = await this.#options.inputs.read(image.entry.id, 'image');
      if (image !== this.#shown) return;
      if (before === undefined) this.#showProblem('The input image is no longer stored.');
      else this.#wipe.showBefore(before);
      this.#wipe.showAfter();
    } catch (error) {
      this.#showProblem(errorWords(error));
    }
  }

  async #describe(): Promise<void> {
    const model = this.#options.imageReader();
    if (this.#shown === undefined || model === undefined || this.#description !== undefined) return;
    const { signal } = (this.#description = new AbortController());
    const words = partOf(this.#dialog, 'description', HTMLElement);
    words.textContent = 'Looking…';
    const { entry, index } = this.#shown;
    const text = await describeImage(this.#options.session, { model, id: entry.id, index, signal }).catch(errorWords);
    if (signal.aborted) return;
    words.textContent = text;
    this.#description = undefined;
  }

  async #copyLink(): Promise<void> {
    if (this.#shown === undefined) return;
    const { client, baseUrl } = this.#options.session;
    const { entry, index } = this.#shown;
    try {
      const { images = [] } = await client.get(entry.id);
      const image = images.find((each) => each.index === index);
      if (image === undefined) this.#showProblem('The server has deleted this image.');
      else if (await copyLine(new URL(image.url.replace(/^.*?\/v1\//, 'v1/'), baseUrl).href))
        partOf(this.#dialog, 'description', HTMLElement).textContent = 'The link is in the clipboard.';
    } catch (error) {
      this.#showProblem(errorWords(error));
    }
  }

  async #run(act: ViewerAction): Promise<void> {
    const image = this.#shown;
    if (image === undefined || this.#isRunning) return;
    this.#isRunning = true;
    this.#showProblem('');
    try {
      const moveFocus = await act(image);
      // Another image may be shown by now.
      if (this.#shown !== image) return;
      this.#dialog.close();
      moveFocus();
    } catch (error) {
      if (this.#shown === undefined) showBanner('problem', errorWords(error));
      else this.#showProblem(errorWords(error));
    } finally {
      this.#isRunning = false;
    }
  }

  #clear(): void {
    this.#shown = undefined;
    this.#description?.abort();
    this.#description = undefined;
    URL.revokeObjectURL(this.#url);
    void this.#compare(false);
    this.#showProblem('');
    partOf(this.#dialog, 'description', HTMLElement).textContent = '';
  }

  #showProblem(words: string): void {
    partOf(this.#dialog, 'problem', HTMLElement).textContent = words;
  }

  #button(name: string): HTMLButtonElement {
    return partOf(this.#dialog, name, HTMLButtonElement);
  }
}

function isSame(one: ViewedImage, other: ViewedImage): boolean {
  return one.entry.id === other.entry.id && one.index === other.index;
}

function detailElement([label, value]: [string, string]): HTMLElement {
  const row = document.createElement('div');
  const [term, words] = [document.createElement('dt'), document.createElement('dd')];
  term.textContent = label;
  words.textContent = value;
  row.append(term, words);
  return row;
}
