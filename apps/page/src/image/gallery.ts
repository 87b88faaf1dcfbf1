import type { GalleryEntry, GalleryStorage } from '../requests/gallery-storage.ts';
import type { RequestInputs } from '../requests/request-inputs.ts';
import { isOpen } from '../requests/request-life.ts';
import type { ImageRequestState } from '../requests/request-state.ts';
import type { StreamSlots } from '../requests/stream-slots.ts';
import type { Session } from '../server/session.ts';
import { findElement } from '../shell/find-element.ts';
import type { ViewedImage } from '../requests/viewed-image.ts';
import { createRequestCard, type RequestCard } from './request-card.ts';

export interface GalleryOptions {
  storage: GalleryStorage;
  session: Session;
  slots: StreamSlots;
  inputs: RequestInputs;
  /** Returns the model that describes images; undefined if none is served. */
  imageReader: () => string | undefined;
  /** Fills the form with a request. */
  onAgain: (entry: GalleryEntry) => void;
  /** Opens a finished image. */
  onOpen: (id: string, index: number) => void;
}

/** One column, as in page.css. */
const isNarrow = matchMedia('(max-width: 50rem)');

/** The gallery of this browser's requests, the newest first. */
export class Gallery {
  readonly #options: GalleryOptions;
  readonly #list = findElement(document, '#cards', HTMLOListElement);
  readonly #cards = new Map<string, RequestCard>();
  /** Callbacks that show a request's state elsewhere on the page, by request id. */
  readonly #watchers = new Map<string, (state: ImageRequestState | undefined) => void>();
  #isPaused = false;
  #search = '';

  constructor(options: GalleryOptions) {
    this.#options = options;
  }

  /** Shows the stored requests: on load, and after a change by another tab. */
  sync(): void {
    const entries = this.#options.storage.read();
    const wanted = new Set(entries.map(({ id }) => id));
    for (const id of this.#cards.keys()) if (!wanted.has(id)) this.#drop(id);
    // The oldest first: it runs first, so it needs a stream first.
    for (const entry of entries.toReversed()) if (!this.#cards.has(entry.id)) this.#show(entry);
    // The newest first: requests from elsewhere are added between the others.
    const elements = entries.flatMap(({ id }) => this.#cards.get(id)?.element ?? []);
    if (elements.some((element, at) => element !== this.#list.children[at])) this.#list.append(...elements);
    this.search(this.#search);
    showCounts([...this.#cards.values()]);
  }

  /** Shows only the requests whose prompt or model contains the words. */
  search(words: string): void {
    this.#search = words;
    const wanted = words.trim().toLowerCase();
    for (const { tracked, element } of this.#cards.values()) {
      const { prompt, model = '' } = tracked.entry.request;
      element.hidden = !`${prompt} ${model}`.toLowerCase().includes(wanted);
    }
  }

  /** Adds requests that were sent from elsewhere, as many as fit. Returns their number. */
  addAll(entries: readonly GalleryEntry[]): number {
    const added = this.#options.storage.addAll(entries);
    this.sync();
    return added;
  }

  has(id: string): boolean {
    return this.#cards.has(id);
  }

  add(entry: GalleryEntry): void {
    this.#options.storage.add(entry);
    this.sync();
    // On a phone the card is below the form, out of sight.
    if (isNarrow.matches) this.#cards.get(entry.id)?.element.scrollIntoView({ block: 'nearest' });
  }

  /** Returns the finished images, in the order in which they are shown. */
  get images(): ViewedImage[] {
    return this.#options.storage.read().flatMap(({ id }) => this.#cards.get(id)?.images() ?? []);
  }

  focus(id: string): void {
    this.#cards.get(id)?.element.querySelector('article')?.focus();
  }

  /**
   * Calls `onChange` with the state of a request now and on every change; with undefined if it is not in the gallery
   * (any more).
   */
  watch(id: string, onChange: (state: ImageRequestState | undefined) => void): void {
    this.#watchers.set(id, onChange);
    onChange(this.#cards.get(id)?.tracked.state);
  }

  /** Shows the actions of the models that are served now. */
  showModels(): void {
    this.#cards.forEach((card) => card.showModels());
  }

  /** Stops following requests while the page is hidden; new ones are not followed either until `resume`. */
  pause(): void {
    this.#isPaused = true;
    this.#cards.forEach(({ tracked }) => tracked.pause());
  }

  /** Shows the stored requests, and follows those that are open or incomplete. */
  resume(): void {
    this.#isPaused = false;
    // A frozen tab missed the changes of other tabs.
    this.sync();
    this.#cards.forEach(({ tracked }) => tracked.resume());
  }

  #show(entry: GalleryEntry): void {
    const card = createRequestCard({
      ...this.#options,
      entry,
      onChange: (state) => {
        showCounts([...this.#cards.values()]);
        this.#watchers.get(entry.id)?.(state);
      },
      onRemove: (id) => {
        this.#options.storage.remove(id);
        this.sync();
        findElement(document, '#gallery-title', HTMLHeadingElement).focus();
      },
    });
    this.#cards.set(entry.id, card);
    this.#list.prepend(card.element);
    if (!this.#isPaused) card.tracked.resume();
  }

  #drop(id: string): void {
    this.#cards.get(id)?.dispose();
    this.#options.inputs.forget(id);
    this.#cards.delete(id);
    this.#watchers.get(id)?.(undefined);
    this.#watchers.delete(id);
  }
}

function showCounts(cards: readonly RequestCard[]): void {
  const open = cards.filter(({ tracked }) => isOpen(tracked.state)).length;
  findElement(document, '#tray-tools', HTMLElement).hidden = cards.length === 0;
  findElement(document, '#empty', HTMLElement).hidden = cards.length > 0;
  findElement(document, '#gallery-count', HTMLParagraphElement).textContent = open === 0 ? '' : `${open} on the way`;
  document.title = open === 0 ? 'Darkroom' : `(${open}) Darkroom`;
}
