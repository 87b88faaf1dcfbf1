import type { PictureRequest } from '@darkroom/client';
import type { GalleryEntry, GalleryStorage } from '../requests/gallery-storage.ts';
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
  /** Fills the form with a request. */
  onAgain: (request: PictureRequest) => void;
}

/** One column, as in page.css. */
const isNarrow = matchMedia('(max-width: 50rem)');

/** This browser's requests, the newest first. */
export function createGallery({ storage, ...options }: GalleryOptions) {
  const list = findElement(document, '#cards', HTMLOListElement);
  const cards = new Map<string, RequestCard>();
  /** Of requests, those that also show elsewhere on the page. */
  const watchers = new Map<string, (state: RequestState | undefined) => void>();
  let isPaused = false;
  const showCount = (): void => showCounts([...cards.values()]);
  const sync = (): void => {
    const entries = storage.read();
    const wanted = new Set(entries.map(({ id }) => id));
    for (const [id, card] of cards) {
      if (wanted.has(id)) continue;
      card.dispose();
      cards.delete(id);
      watchers.get(id)?.(undefined);
      watchers.delete(id);
    }
    // The oldest first: what was asked for first is the first to run, and to need a stream.
    for (const entry of entries.toReversed()) {
      if (cards.has(entry.id)) continue;
      const onChange = (state: RequestState): void => {
        showCount();
        watchers.get(entry.id)?.(state);
      };
      const card = createRequestCard({ ...options, entry, onChange, onRemove });
      cards.set(entry.id, card);
      list.prepend(card.element);
      if (!isPaused) card.tracked.resume();
    }
    showCount();
  };
  const onRemove = (id: string): void => {
    storage.remove(id);
    sync();
    findElement(document, '#gallery-title', HTMLHeadingElement).focus();
  };
  return {
    /** Shows what is stored: after loading, and when another tab has changed it. */
    sync,
    add(entry: GalleryEntry): void {
      storage.add(entry);
      sync();
      // On a phone it begins out of sight, below the form.
      if (isNarrow.matches) cards.get(entry.id)?.element.scrollIntoView({ block: 'nearest' });
    },
    /** Tells what is known of a request of the gallery, now and at every change; undefined when it is not there (any more). */
    watch(id: string, onChange: (state: RequestState | undefined) => void): void {
      watchers.set(id, onChange);
      onChange(cards.get(id)?.tracked.state);
    },
    /** Stops following, as while nobody looks; nothing new is followed either until `resume`. */
    pause(): void {
      isPaused = true;
      cards.forEach(({ tracked }) => tracked.pause());
    },
    /** Shows what is stored, and follows all that is open, or was not seen whole. */
    resume(): void {
      isPaused = false;
      // What other tabs did while this one was frozen, it was not told.
      sync();
      cards.forEach(({ tracked }) => tracked.resume());
    },
  };
}

function showCounts(cards: readonly RequestCard[]): void {
  const open = cards.filter(({ tracked }) => isOpen(tracked.state)).length;
  findElement(document, '#empty', HTMLParagraphElement).hidden = cards.length > 0;
  findElement(document, '#gallery-count', HTMLParagraphElement).textContent = open === 0 ? '' : `${open} on the way`;
  document.title = open === 0 ? 'Darkroom' : `(${open}) Darkroom`;
}
