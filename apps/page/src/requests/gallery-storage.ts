import type { PictureRequest } from '@darkroom/client';
import type { PageStorage } from '../shell/page-storage.ts';

/** A request of this browser. */
export interface GalleryEntry {
  id: string;
  createdAtMs: number;
  request: PictureRequest;
}

export type GalleryStorage = ReturnType<typeof createGalleryStorage>;

export const galleryKey = 'darkroom.gallery';
export const maxEntries = 60;
/** Pictures of one request: more than any server draws. */
const maxPictures = 100;

/** Reads before it writes, every time: another tab may have written since. */
export function createGalleryStorage(storage: Pick<PageStorage, 'getItem' | 'setItem'>) {
  const read = (): GalleryEntry[] => parsed(storage.getItem(galleryKey));
  const write = (entries: readonly GalleryEntry[]): void =>
    storage.setItem(galleryKey, JSON.stringify(entries.slice(0, maxEntries)));
  return {
    /** The newest first. */
    read,
    /** Drops the oldest when there are too many. */
    add: (entry: GalleryEntry): void => write([entry, ...read().filter(({ id }) => id !== entry.id)]),
    remove: (id: string): void => write(read().filter((entry) => entry.id !== id)),
  };
}

/** What an older or newer page wrote, or a hand, must not break this one. */
function parsed(text: string | null): GalleryEntry[] {
  try {
    const value: unknown = JSON.parse(text ?? '[]');
    return Array.isArray(value) ? value.filter(isEntry) : [];
  } catch {
    return [];
  }
}

function isEntry(value: unknown): value is GalleryEntry {
  if (typeof value !== 'object' || value === null) return false;
  const { id, createdAtMs, request } = value as Partial<GalleryEntry>;
  if (typeof id !== 'string' || typeof createdAtMs !== 'number' || typeof request?.prompt !== 'string') return false;
  const { n = 1, size = '', image = '', mask = '' } = request;
  if (![size, image, mask].every((text) => typeof text === 'string')) return false;
  return Number.isInteger(n) && n >= 1 && n <= maxPictures;
}
