import { ClientError, type PictureRequest } from '@darkroom/client';
import type { Session } from '../server/session.ts';

const names = ['image', 'mask'] as const;

export type RequestInputs = ReturnType<typeof createRequestInputs>;

/**
 * The pictures that requests began with: those that were sent from here as long as the page is open, others from the server as long as it
 * keeps them. They are too large for what a browser keeps of a page, and not for others to find there.
 */
export function createRequestInputs(session: Session) {
  const kept = new Map<string, Blob>();
  return {
    /** The request as it may be stored: with where its pictures are in their place. */
    keep(id: string, request: PictureRequest): PictureRequest {
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
    /** Undefined when it is kept nowhere any more. Throws as the client does for all else. */
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

/** As the API takes it in a picture's place, too. */
function pathOf(id: string, name: string): string {
  return `/v1/predict/${id}/inputs/${name}`;
}
