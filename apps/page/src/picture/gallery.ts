import type { GalleryEntry, GalleryStorage } from '../requests/gallery-storage.ts';
import type { RequestInputs } from '../requests/request-inputs.ts';
import { isOpen } from '../requests/request-life.ts';
import type { RequestState } from '../requests/request-state.ts';
import type { StreamSlots } from '../requests/stream-slots.ts';
import type { Session } from '../server/session.ts';
import { findElement } from '../shell/find-element.ts';
import { createRequestCard, type RequestCard } from './request-card.ts';

export interface GalleryOptions {
  storage: GalleryStorage;
  session: Session;
  slots: StreamSlots;
  inputs: RequestInputs;
  /** Fills the form with a request. */
  onAgain: (entry: GalleryEntry) => void;
}

/** One column, as in page.css. */
const isNarrow = matchMedia('(max-width: 50rem)');

/** This browser's requests, the newest first. */
export class Gallery {
  readonly #options: GalleryOptions;
  readonly #list = findElement(document, '#cards', HTMLOListElement);
  readonly #cards = new Map<string, RequestCard>();
  /** What shows the state of a request elsewhere on the page, by the request's id. */
  readonly #watchers = new Map<string, (state: RequestState | undefined) => void>();
  #isPaused = false;

  constructor(options: GalleryOptions) {
    this.#options = options;
  }

  /** Shows what is stored: after loading, and when another tab has changed it. */
  sync(): void {
    const entries = this.#options.storage.read();
    const wanted = new Set(entries.map(({ id }) => id));
    for (const id of this.#cards.keys()) if (!wanted.has(id)) this.#drop(id);
    // The oldest first: what was asked for first is the first to run, and to need a stream.
    for (const entry of entries.toReversed()) if (!this.#cards.has(entry.id)) this.#show(entry);
    showCounts([...this.#cards.values()]);
  }

  add(entry: GalleryEntry): void {
    this.#options.storage.add(entry);
    this.sync();
    // On a phone it begins out of sight, below the form.
    if (isNarrow.matches) this.#cards.get(entry.id)?.element.scrollIntoView({ block: 'nearest' });
  }

  /** Tells what is known of a request of the gallery, now and at every change; undefined when it is not there (any more). */
  watch(id: string, onChange: (state: RequestState | undefined) => void): void {
    this.#watchers.set(id, onChange);
    onChange(this.#cards.get(id)?.tracked.state);
  }

  /** Stops following, as while nobody looks; nothing new is followed either until `resume`. */
  pause(): void {
    this.#isPaused = true;
    this.#cards.forEach(({ tracked }) => tracked.pause());
  }

  /** Shows what is stored, and follows all that is open, or was not seen whole. */
  resume(): void {
    this.#isPaused = false;
    // What other tabs did while this one was frozen, it was not told.
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
  findElement(document, '#empty', HTMLParagraphElement).hidden = cards.length > 0;
  findElement(document, '#gallery-count', HTMLParagraphElement).textContent = open === 0 ? '' : `${open} on the way`;
  document.title = open === 0 ? 'Darkroom' : `(${open}) Darkroom`;
}
