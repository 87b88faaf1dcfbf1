import type { ImageRequest } from '@darkroom/client';
import { type PageStorage, parseItems } from '../shell/page-storage.ts';

/** A request of this browser. */
export interface GalleryEntry {
  id: string;
  createdAtMs: number;
  request: ImageRequest;
}

export type GalleryStorage = ReturnType<typeof createGalleryStorage>;

export const galleryKey = 'darkroom.gallery';
export const maxEntries = 60;
/** Maximum number of images per request; larger than any server's limit. */
const maxImages = 100;

/** Creates the gallery's storage. Every write reads first, because another tab may have written. */
export function createGalleryStorage(storage: Pick<PageStorage, 'getItem' | 'setItem'>) {
  const read = (): GalleryEntry[] => parseItems(storage.getItem(galleryKey), isEntry);
  const write = (entries: readonly GalleryEntry[]): void =>
    storage.setItem(galleryKey, JSON.stringify(entries.slice(0, maxEntries)));
  return {
    /** Reads the entries, the newest first. */
    read,
    /** Adds an entry; evicts the oldest above the limit. */
    add: (entry: GalleryEntry): void => write([entry, ...read().filter(({ id }) => id !== entry.id)]),
    /** Adds entries among the others, by time: the newest, as many as fit. Evicts none. Returns the number added. */
    addAll(added: readonly GalleryEntry[]): number {
      const entries = read();
      const known = new Set(entries.map(({ id }) => id));
      const others = byTime(added.filter(({ id }) => !known.has(id))).slice(0, maxEntries - entries.length);
      write(byTime([...entries, ...others]));
      return others.length;
    },
    remove: (id: string): void => write(read().filter((entry) => entry.id !== id)),
  };
}

/** Returns the entries, the newest first. */
function byTime(entries: readonly GalleryEntry[]): GalleryEntry[] {
  return entries.toSorted((one, other) => other.createdAtMs - one.createdAtMs);
}

function isEntry(value: unknown): value is GalleryEntry {
  if (typeof value !== 'object' || value === null) return false;
  const { id, createdAtMs, request } = value as Partial<GalleryEntry>;
  if (typeof id !== 'string' || typeof createdAtMs !== 'number' || typeof request?.prompt !== 'string') return false;
  const { n = 1, size = '', image = '', mask = '' } = request;
  if (![size, image, mask].every((text) => typeof text === 'string')) return false;
  return Number.isInteger(n) && n >= 1 && n <= maxImages;
}
