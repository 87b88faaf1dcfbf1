import type { PictureRequest } from '@darkroom/client';
import { copyLine } from './copy-line.ts';
import { curlLine } from './curl-line.ts';
import type { GalleryEntry, GalleryStorage } from './gallery-storage.ts';
import { createRequestCard, type RequestCard } from './request-card.ts';
import { isOpen } from './request-state.ts';
import type { Session } from './session.ts';
import type { StreamSlots } from './stream-slots.ts';
import { TrackedRequest } from './tracked-request.ts';

export interface GalleryElements {
  cards: HTMLElement;
  title: HTMLElement;
  count: HTMLElement;
  empty: HTMLElement;
}

export interface GalleryOptions {
  elements: GalleryElements;
  storage: GalleryStorage;
  session: Session;
  slots: StreamSlots;
  announce: (words: string) => void;
  /** Fills the form with a request. */
  onAgain: (request: PictureRequest) => void;
}

/** One column, as in page.css. */
const isNarrow = matchMedia('(max-width: 50rem)');

interface Item {
  tracked: TrackedRequest;
  card: RequestCard;
}

/** This browser's requests, the newest first. */
export function createGallery(options: GalleryOptions) {
  const { elements, storage } = options;
  const items = new Map<string, Item>();
  let isPaused = false;
  const showCount = (): void => showCounts(elements, [...items.values()]);
  const remove = (id: string): void => {
    storage.remove(id);
    drop(items, id);
    showCount();
    elements.title.focus();
  };
  const sync = (): void => {
    const entries = storage.read();
    const wanted = new Set(entries.map(({ id }) => id));
    for (const id of items.keys()) if (!wanted.has(id)) drop(items, id);
    // The oldest first: what was asked for first is the first to run, and to need a stream.
    for (const entry of entries.toReversed()) {
      if (items.has(entry.id)) continue;
      const item = createItem(entry, options, { onChange: showCount, remove: () => remove(entry.id) });
      items.set(entry.id, item);
      elements.cards.prepend(item.card.element);
      if (!isPaused) item.tracked.resume();
    }
    showCount();
  };
  return {
    /** Shows what is stored: after loading, and when another tab has changed it. */
    sync,
    add(entry: GalleryEntry): void {
      storage.add(entry);
      sync();
      // On a phone it begins out of sight, below the form.
      if (isNarrow.matches) items.get(entry.id)?.card.element.scrollIntoView({ block: 'nearest' });
    },
    /** Stops following, as while nobody looks; nothing new is followed either until `resume`. */
    pause(): void {
      isPaused = true;
      items.forEach(({ tracked }) => tracked.pause());
    },
    /** Shows what is stored, and follows all that is open, or was not seen whole. */
    resume(): void {
      isPaused = false;
      // What other tabs did while this one was frozen, it was not told.
      sync();
      items.forEach(({ tracked }) => tracked.resume());
    },
  };
}

function drop(items: Map<string, Item>, id: string): void {
  const item = items.get(id);
  items.delete(id);
  item?.tracked.pause();
  item?.card.element.remove();
  item?.card.dispose();
}

function showCounts({ empty, count }: GalleryElements, items: readonly Item[]): void {
  const open = items.filter(({ tracked }) => isOpen(tracked.state)).length;
  empty.hidden = items.length > 0;
  count.textContent = open === 0 ? '' : `${open} on the way`;
  document.title = open === 0 ? 'Darkroom' : `(${open}) Darkroom`;
}

function createItem(
  entry: GalleryEntry,
  { session, slots, announce, onAgain }: GalleryOptions,
  { onChange, remove }: { onChange: () => void; remove: () => void },
): Item {
  const { request } = entry;
  const tracked = new TrackedRequest({
    entry,
    session,
    slots,
    announce,
    onChange(state) {
      card.update(state);
      onChange();
    },
  });
  const card = createRequestCard(entry, {
    cancel: () => void tracked.cancel(),
    retry: () => tracked.resume(),
    again: () => onAgain(request),
    async curl() {
      const { baseUrl, hasKey } = session;
      const isCopied = await copyLine(curlLine({ baseUrl, request, hasKey }));
      if (isCopied) announce('The curl line is in the clipboard.');
      return isCopied;
    },
    remove,
  });
  card.update(tracked.state);
  return { tracked, card };
}
