import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CommandError } from '../command/command-error.ts';
import { BrokenConnectionError } from './broken-connection-error.ts';
import { type HubCommit, type HubFile, RangeIgnoredError, readHubFile } from './hub-repo.ts';
import { withRetries } from './retrying.ts';

export interface DownloadOptions {
  hub: HubCommit;
  directory: string;
  /** Called with bytes found from an earlier run and bytes received; negative when bytes are discarded. */
  onBytes?: (count: number, isReceived: boolean) => void;
}

/**
 * Returns the name of an incomplete file. It contains the checksum, so that it is never continued with other content.
 */
export function partialName({ path, checksum }: HubFile): string {
  return `${path}.${checksum.digest.slice(0, 12)}.part`;
}

/**
 * Downloads a file, or the rest of it, into a directory. It gets its final name when it is complete.
 *
 * @throws CommandError if the content does not match the hub's checksum; it is then deleted.
 */
export async function download(file: HubFile, { hub, directory, onBytes }: DownloadOptions): Promise<void> {
  const path = join(directory, file.path);
  const part = join(directory, partialName(file));
  const whole = await readFound(path, file);
  if (whole?.bytes === file.size && isContentOf(file, whole.hash)) return onBytes?.(file.size, false);
  await mkdir(dirname(path), { recursive: true });
  await rm(path, { force: true });
  let { bytes, hash } = (await readFound(part, file)) ?? { bytes: 0, hash: startHash(file) };
  onBytes?.(bytes, false);
  await withRetries(async (onProgress) => {
    const target = await open(part, bytes === 0 ? 'w' : 'a');
    try {
      if (bytes === file.size) return;
      for await (const chunk of readHubFile(hub, file, bytes)) {
        await target.appendFile(chunk);
        hash.update(chunk);
        bytes += chunk.length;
        onBytes?.(chunk.length, true);
        onProgress();
      }
    } catch (error) {
      if (error instanceof RangeIgnoredError) {
        onBytes?.(-bytes, false);
        [bytes, hash] = [0, startHash(file)];
      }
      throw error;
    } finally {
      await target.close();
    }
    if (bytes < file.size) throw new BrokenConnectionError(`${file.path} ended early`);
  }, hub);
  if (bytes !== file.size || !isContentOf(file, hash)) {
    await rm(part);
    onBytes?.(-bytes, false);
    throw new CommandError(
      `${file.path} does not match the hub's checksum and was deleted. Run the command again; if it happens again, a proxy may be changing the file.`,
    );
  }
  await rename(part, path);
}

/** Returns the size and hash of a file on disk; undefined if it is missing or too large. */
async function readFound(path: string, file: HubFile): Promise<{ bytes: number; hash: Hash } | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || found.size > file.size) return undefined;
  const hash = startHash(file);
  for await (const chunk of createReadStream(path) as AsyncIterable<Uint8Array>) hash.update(chunk);
  return { bytes: found.size, hash };
}

// Git hashes a header with the file's size first.
function startHash({ checksum, size }: HubFile): Hash {
  return checksum.kind === 'sha256' ? createHash('sha256') : createHash('sha1').update(`blob ${size}\0`);
}

function isContentOf({ checksum }: HubFile, hash: Hash): boolean {
  return hash.digest('hex') === checksum.digest;
}
