/** Stores bytes as files of a directory that all processes share, over NFS for example. */
import { randomUUID } from 'node:crypto';
import { mkdir, open, opendir, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type ByteStore, bytesUnavailable } from './byte-store.ts';

const pageSize = 1000;
/** Suffix of files that are being written. */
const partial = '.partial';
/** Images and prompts are private: no other user of the machine may read them, whatever the umask. */
const directoryMode = 0o700;
const fileMode = 0o600;

export class DirectoryBytes implements ByteStore {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  /** Writes to a temporary name, then renames: the name appears only once all bytes are on disk. */
  async put(name: string, data: Uint8Array): Promise<void> {
    const path = this.#pathOf(name);
    const temporary = `${path}.${randomUUID()}${partial}`;
    try {
      await writeInFolder(temporary, data);
      await rename(temporary, path);
    } catch (error) {
      // Partial files might fill the disk.
      await rm(temporary, { force: true }).catch(() => {});
      throw bytesUnavailable('put', error);
    }
  }

  async get(name: string, { from, to }: { from: number; to: number }): Promise<Buffer | undefined> {
    try {
      const file = await open(this.#pathOf(name));
      try {
        const { bytesRead, buffer } = await file.read(Buffer.alloc(to - from), 0, to - from, from);
        return bytesRead === to - from ? buffer : undefined;
      } finally {
        await file.close();
      }
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw bytesUnavailable('get', error);
    }
  }

  async *list(prefix: string): AsyncGenerator<readonly string[], void> {
    let page: string[] = [];
    for await (const name of this.#walk(prefix)) {
      page.push(name);
      if (page.length < pageSize) continue;
      yield page;
      page = [];
    }
    yield page;
  }

  async *#walk(prefix: string): AsyncGenerator<string, void> {
    let isEmpty = true;
    try {
      for await (const entry of await opendir(join(this.#root, prefix))) {
        isEmpty = false;
        if (entry.isDirectory()) yield* this.#walk(`${prefix}${entry.name}/`);
        else yield `${prefix}${entry.name}`;
      }
      // Keep the top folder: all requests share it.
      if (isEmpty && prefix.slice(0, -1).includes('/')) yield prefix;
    } catch (error) {
      // Another process has removed it.
      if (!isMissing(error)) throw bytesUnavailable('list', error);
    }
  }

  /** Removes files, and the folders that become empty, up to the folder of the request. */
  async remove(names: readonly string[]): Promise<void> {
    try {
      const files = names.filter((name) => !name.endsWith('/'));
      const removing = await Promise.allSettled(files.map((name) => rm(this.#pathOf(name), { force: true })));
      const failed = removing.find((one) => one.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
      const parents = new Set(names.map((name) => (name.endsWith('/') ? name.slice(0, -1) : dirname(name))));
      const folders = new Set([...parents, ...[...parents].map((parent) => dirname(parent))]);
      // rmdir fails on folders that are not empty; the top folder, which all requests share, is skipped.
      for (const folder of folders) if (folder.includes('/')) await rmdir(join(this.#root, folder)).catch(() => {});
    } catch (error) {
      throw bytesUnavailable('remove', error);
    }
  }

  /** @throws TypeError for a name that leads out of the directory. Darkroom creates no such names. */
  #pathOf(name: string): string {
    if (name.split('/').some((part) => /^\.{0,2}$/.test(part)))
      throw new TypeError('invalid blob name: a path segment is empty, "." or ".."');
    return join(this.#root, name);
  }
}

/** Retries if a sweep removes the empty folder between `mkdir` and `writeFile`. */
async function writeInFolder(path: string, data: Uint8Array): Promise<void> {
  for (let triesLeft = 5; ; triesLeft--) {
    try {
      await mkdir(dirname(path), { recursive: true, mode: directoryMode });
      return await writeFile(path, data, { flush: true, mode: fileMode });
    } catch (error) {
      if (triesLeft === 1 || !isMissing(error)) throw error;
    }
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
