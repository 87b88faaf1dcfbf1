import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';

/** What the hub knows a file's content by: large files by their SHA-256, small ones as git does. */
export interface Checksum {
  readonly kind: 'sha256' | 'git-blob';
  /** In hexadecimal. */
  readonly digest: string;
}

/** Adds up a file as its bytes come. */
export interface ChecksumMeter {
  add(bytes: Uint8Array): void;
  /** Whether what was added is the whole file. */
  matches(): boolean;
}

/** @param size of the whole file, in bytes: git counts it in. */
export function createChecksumMeter({ kind, digest }: Checksum, size: number): ChecksumMeter {
  const hash = createHash(kind === 'sha256' ? 'sha256' : 'sha1');
  if (kind === 'git-blob') hash.update(`blob ${size}\0`);
  return {
    add: (bytes) => void hash.update(bytes),
    matches: () => hash.digest('hex') === digest,
  };
}

/** Whether a file that is there has the size and the content that it should. */
export async function fileMatches(path: string, checksum: Checksum, size: number): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  if (found?.size !== size) return false;
  const meter = createChecksumMeter(checksum, size);
  for await (const chunk of createReadStream(path) as AsyncIterable<Uint8Array>) meter.add(chunk);
  return meter.matches();
}
