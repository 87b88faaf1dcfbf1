import { ClientError, type ImageRequest } from '@darkroom/client';
import type { Session } from '../server/session.ts';

const names = ['image', 'mask'] as const;

export type RequestInputs = ReturnType<typeof createRequestInputs>;

/**
 * Provides the input images of requests: from memory if they were sent by this page, otherwise from the server while
 * it stores them. They are too large and too private for the browser's storage.
 */
export function createRequestInputs(session: Session) {
  const kept = new Map<string, Blob>();
  return {
    /** Stores a request's images in memory; returns the request with their paths instead. */
    keep(id: string, request: ImageRequest): ImageRequest {
      const stored = { ...request };
      for (const name of names) {
        const file = request[name];
        if (file === undefined) continue;
        stored[name] = pathOf(id, name);
        if (file instanceof Blob) kept.set(pathOf(id, name), file);
      }
      return stored;
    },
    forget(id: string): void {
      for (const name of names) kept.delete(pathOf(id, name));
    },
    isKept: (id: string, name: 'image' | 'mask'): boolean => kept.has(pathOf(id, name)),
    /** Returns an input image, or undefined if it is no longer stored. Throws the client's other errors. */
    async read(id: string, name: 'image' | 'mask'): Promise<Blob | undefined> {
      const file = kept.get(pathOf(id, name));
      if (file !== undefined) return file;
      try {
        const found = await session.client.input(id, name);
        kept.set(pathOf(id, name), found);
        return found;
      } catch (error) {
        if (error instanceof ClientError && (error.status === 404 || error.status === 410)) return undefined;
        throw error;
      }
    },
  };
}

/** Returns the path of an input image, which the API also accepts as an input. */
function pathOf(id: string, name: string): string {
  return `/v1/predict/${id}/inputs/${name}`;
}
