/** Bytes as files of a directory that all processes share, over NFS for one. */
import { randomUUID } from 'node:crypto';
import { mkdir, open, opendir, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type ByteStore, bytesUnavailable } from './byte-store.ts';

const pageSize = 1000;
/** What files that are being written end with. */
const partial = '.partial';

export class DirectoryBytes implements ByteStore {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  /** Its name comes when all of it is there. */
  async put(name: string, data: Uint8Array): Promise<void> {
    const path = this.#pathOf(name);
    const made = `${path}.${randomUUID()}${partial}`;
    try {
      await mkdir(dirname(path), { recursive: true });
      await writeFile(made, data, { flush: true });
      await rename(made, path);
    } catch (error) {
      // The disk may be full of such.
      await rm(made, { force: true }).catch(() => {});
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
    try {
      for await (const entry of await opendir(join(this.#root, prefix))) {
        if (entry.isDirectory()) yield* this.#walk(`${prefix}${entry.name}/`);
        else yield `${prefix}${entry.name}`;
      }
    } catch (error) {
      // Somebody else has removed it.
      if (!isMissing(error)) throw bytesUnavailable('list', error);
    }
  }

  /** And the folders that are empty then, up to a request's. */
  async remove(names: readonly string[]): Promise<void> {
    try {
      const removing = await Promise.allSettled(names.map((name) => rm(this.#pathOf(name), { force: true })));
      const failed = removing.find((one) => one.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
      const kinds = new Set(names.map((name) => dirname(name)));
      const requests = new Set([...kinds].map((kind) => dirname(kind)));
      // One that is not empty stays.
      for (const folder of [...kinds, ...requests]) await rmdir(join(this.#root, folder)).catch(() => {});
    } catch (error) {
      throw bytesUnavailable('remove', error);
    }
  }

  /** @throws TypeError for a name that leads out of the directory; none of ours does. */
  #pathOf(name: string): string {
    if (name.split('/').some((part) => /^\.{0,2}$/.test(part))) throw new TypeError('the name of bytes is no name');
    return join(this.#root, name);
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
