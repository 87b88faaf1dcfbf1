import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CommandError } from '../command-error.ts';
import { BrokenConnectionError } from './broken-connection-error.ts';
import { type HubCommit, type HubFile, RangeIgnoredError, readHubFile } from './hub-repo.ts';
import { retrying } from './retrying.ts';

export interface DownloadOptions {
  hub: HubCommit;
  directory: string;
  /** Bytes that are there: those of an earlier run, and then as they come. Negative when some are thrown away. */
  onBytes?: (count: number, isReceived: boolean) => void;
}

/** What a file is called until it is whole: with its checksum, so that it is never continued with something else. */
export function partOf({ path, checksum }: HubFile): string {
  return `${path}.${checksum.digest.slice(0, 12)}.part`;
}

/**
 * Brings one file into a directory, or what is missing of it. It has its own name only when it is whole.
 *
 * @throws CommandError if what came is not what the hub says the file is; it is deleted then.
 */
export async function download(file: HubFile, { hub, directory, onBytes }: DownloadOptions): Promise<void> {
  const path = join(directory, file.path);
  const part = join(directory, partOf(file));
  const whole = await readFound(path, file);
  if (whole?.bytes === file.size && isContentOf(file, whole.hash)) return onBytes?.(file.size, false);
  await mkdir(dirname(path), { recursive: true });
  await rm(path, { force: true });
  let { bytes, hash } = (await readFound(part, file)) ?? { bytes: 0, hash: startHash(file) };
  onBytes?.(bytes, false);
  await retrying(async (onProgress) => {
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
      `${file.path} is not what the hub says it is (wrong checksum) and was deleted. Run the command again; if it stays so, something on the way changes it.`,
    );
  }
  await rename(part, path);
}

/** What is there of a file; undefined if nothing is, or more than the whole. */
async function readFound(path: string, file: HubFile): Promise<{ bytes: number; hash: Hash } | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || found.size > file.size) return undefined;
  const hash = startHash(file);
  for await (const chunk of createReadStream(path) as AsyncIterable<Uint8Array>) hash.update(chunk);
  return { bytes: found.size, hash };
}

/** Git counts a file's size in. */
function startHash({ checksum, size }: HubFile): Hash {
  return checksum.kind === 'sha256' ? createHash('sha256') : createHash('sha1').update(`blob ${size}\0`);
}

function isContentOf({ checksum }: HubFile, hash: Hash): boolean {
  return hash.digest('hex') === checksum.digest;
}
