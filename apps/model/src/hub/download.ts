import { createReadStream } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CommandError } from '../command-error.ts';
import { BrokenConnectionError } from './broken-connection-error.ts';
import { type ChecksumMeter, createChecksumMeter, fileMatches } from './checksum.ts';
import { type HubFile, type HubRepo, RangeIgnoredError } from './hub-repo.ts';
import { type RetryOptions, retrying } from './retrying.ts';

export interface DownloadOptions extends RetryOptions {
  hub: HubRepo;
  commit: string;
  directory: string;
  /** Bytes that are there, first those of an earlier run, and then as they come. Negative when some are thrown away. */
  onBytes: (count: number) => void;
}

/**
 * Brings one file into a directory, or what is missing of it. It has its own name only when it is whole; until then what
 * there is of it has its checksum in its name, so that it is never continued with something else.
 *
 * @throws CommandError if what came is not what the hub says the file is; it is deleted then.
 */
export async function download(file: HubFile, { hub, commit, directory, onBytes, ...retry }: DownloadOptions) {
  const path = join(directory, file.path);
  if (await fileMatches(path, file.checksum, file.size)) return onBytes(file.size);
  await mkdir(dirname(path), { recursive: true });
  await rm(path, { force: true });
  const part = `${path}.${file.checksum.digest.slice(0, 12)}.part`;
  const state = await continuePart(part, file);
  onBytes(state.bytes);
  await retrying(async (onProgress) => {
    const target = await open(part, state.bytes === 0 ? 'w' : 'a');
    try {
      if (state.bytes === file.size) return;
      for await (const chunk of hub.read(file, commit, state.bytes)) {
        await target.appendFile(chunk);
        state.meter.add(chunk);
        state.bytes += chunk.length;
        onBytes(chunk.length);
        onProgress();
      }
    } catch (error) {
      if (!(error instanceof RangeIgnoredError)) throw error;
      onBytes(-state.bytes);
      Object.assign(state, { bytes: 0, meter: createChecksumMeter(file.checksum, file.size) });
      throw new BrokenConnectionError(`the server cannot continue ${file.path}, which starts again`);
    } finally {
      await target.close();
    }
    if (state.bytes < file.size) throw new BrokenConnectionError(`${file.path} ended early`);
  }, retry);
  if (state.bytes !== file.size || !state.meter.matches()) {
    await rm(part);
    onBytes(-state.bytes);
    throw new CommandError(
      `${file.path} is not what the hub says it is (wrong checksum) and was deleted. Run the command again; if it stays so, something on the way changes it.`,
    );
  }
  await rename(part, path);
}

/** What an earlier run left of a file. */
async function continuePart(part: string, file: HubFile): Promise<{ bytes: number; meter: ChecksumMeter }> {
  const meter = createChecksumMeter(file.checksum, file.size);
  const found = await stat(part).catch(() => undefined);
  if (found === undefined || found.size > file.size) return { bytes: 0, meter };
  for await (const chunk of createReadStream(part) as AsyncIterable<Uint8Array>) meter.add(chunk);
  return { bytes: found.size, meter };
}
