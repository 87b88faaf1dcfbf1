import { expiryOfFile, findFile, readFileBytes, type StoredFile } from '@darkroom/store';
import type { WithStore } from '../server/store-guard.ts';

/** Suffix of the URLs of uploaded files, under any host and prefix. */
const pathPattern = /\/replicate\/v1\/files\/(?<id>file-[\w-]{1,40})(?:\/download)?$/;

/** Returns the id in the URL of an uploaded file; undefined for other URLs. Such a URL is never fetched. */
export function fileIdInUrl(url: string): string | undefined {
  const path = URL.canParse(url) ? new URL(url).pathname : url;
  const id = pathPattern.exec(path)?.groups?.['id'];
  return id !== undefined && expiryOfFile(id) !== undefined ? id : undefined;
}

/** Reads a file of an owner; undefined if it is unknown or expired. Calls `admit` before it reads the bytes. */
export async function readOwnFile(
  { withStore }: { withStore: WithStore },
  { owner, id }: { owner: string; id: string },
  admit: (file: StoredFile) => Promise<void> = async () => {},
): Promise<{ file: StoredFile; data: Uint8Array } | undefined> {
  const file = await withStore((store) => findFile(store, owner, id));
  if (file === undefined) return undefined;
  await admit(file);
  const data = await withStore((store) => readFileBytes(store, file));
  return data && { file, data };
}
