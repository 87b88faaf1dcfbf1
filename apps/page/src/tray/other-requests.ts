import type { ImageRequest } from '@darkroom/client';
import type { GalleryEntry } from '../requests/gallery-storage.ts';
import type { Session } from '../server/session.ts';

/** Number of the newest requests that are examined. */
const maxListed = 60;

/** Returns the caller's requests for images that this browser does not have: they were sent from elsewhere. */
export async function findOtherRequests(
  { client }: Session,
  isKnown: (id: string) => boolean,
): Promise<GalleryEntry[]> {
  const found: string[] = [];
  let listed = 0;
  for await (const { kind, request_id: id } of client.list({ pageSize: maxListed })) {
    if (kind === 'image' && !isKnown(id)) found.push(id);
    if (++listed === maxListed) break;
  }
  const entries: GalleryEntry[] = [];
  for (const id of found) {
    const view = await client.get(id);
    // Without its prompt, which servers may not store, a request cannot be shown or varied.
    if (view.images === undefined || typeof view.parameters.prompt !== 'string') continue;
    const fields = Object.entries(view.parameters).filter(([, value]) => value !== null);
    const request = Object.fromEntries(fields) as unknown as ImageRequest;
    entries.push({ id, createdAtMs: Date.parse(view.created_at), request });
  }
  return entries;
}
