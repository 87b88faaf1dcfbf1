import { createHash } from 'node:crypto';
import { type FileHandle, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { EngineKinds, LoadModelOptions } from '@darkroom/executor';

/** Bytes sampled at the start, middle and end of a file: the header, and weights that training is likely to change. */
const sampleBytes = 65_536;

/** Configuration, tokenizers and templates; each model reads some of them. */
const smallFile = /\.(?:json|txt|jinja|model)$/;

/** State of a file when it was marked. */
interface Mark {
  mtimeMs: number;
  /** Size and hash of the samples. */
  content: string;
}

/** Fingerprint of the files that a model was loaded from, and the detection of changes on disk. */
export class ModelFiles {
  readonly #model: LoadModelOptions;
  readonly #kinds: EngineKinds;
  #marks: ReadonlyMap<string, Mark | undefined> = new Map();
  #digest = '';
  #changed: readonly string[] = [];

  constructor(model: LoadModelOptions, kinds: EngineKinds) {
    this.#model = model;
    this.#kinds = kinds;
  }

  /**
   * Digest of the marked files without their times, so equal on every machine with the same files. Empty before `mark`.
   */
  get digest(): string {
    return this.#digest;
  }

  /** Names of the files that differed from their marks at the last `check`. */
  get changed(): readonly string[] {
    return this.#changed;
  }

  /**
   * Records the state of the files. Call before a load, so that files replaced during the load count as changed.
   *
   * @throws DarkroomError `model_unsupported` naming a file that is missing or truncated.
   */
  async mark(): Promise<void> {
    const names = await this.#list();
    this.#marks = new Map(await Promise.all(names.map(async (name) => [name, await this.#markOf(name)] as const)));
    const contents = [...this.#marks].map(([name, mark]) => `${name} ${mark?.content ?? ''}`);
    this.#digest = createHash('sha256').update(contents.join('\n')).digest('hex').slice(0, 16);
    this.#changed = [];
  }

  /** Compares all files with their marks; reads up to 192 KiB of each. @returns true if `changed` has changed. */
  async check(): Promise<boolean> {
    const marks = this.#marks;
    const names: string[] = [];
    for (const [name, mark] of marks) {
      const now = await this.#markOf(name);
      if (now?.mtimeMs !== mark?.mtimeMs || now?.content !== mark?.content) names.push(name);
    }
    // `mark` was called meanwhile.
    if (marks !== this.#marks || names.join('\n') === this.#changed.join('\n')) return false;
    this.#changed = names;
    return true;
  }

  /**
   * Lists the files that the model is loaded from, sorted: graphs, their weights and configuration. Excludes weights of
   * other variants.
   */
  async #list(): Promise<string[]> {
    const { directory } = this.#model;
    const kind = await this.#kinds.detect(directory);
    const [{ files }, entries] = await Promise.all([
      kind.describe(this.#model),
      readdir(directory, { withFileTypes: true }),
    ]);
    const inFolders = await Promise.all(
      entries
        .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
        .map(async ({ name }) => (await readdir(join(directory, name))).map((file) => `${name}/${file}`)),
    );
    const small = [...entries.map(({ name }) => name), ...inFolders.flat()].filter((name) => smallFile.test(name));
    return [...new Set([...files, ...small])].toSorted();
  }

  /** @returns undefined if the file does not exist. */
  async #markOf(name: string): Promise<Mark | undefined> {
    let file: FileHandle | undefined;
    try {
      file = await open(join(this.#model.directory, name));
      const { size, mtimeMs } = await file.stat();
      return { mtimeMs, content: `${size} ${await sample(file, size)}` };
    } catch {
      return undefined;
    } finally {
      await file?.close();
    }
  }
}

async function sample(file: FileHandle, size: number): Promise<string> {
  const hash = createHash('sha256');
  const last = Math.max(0, size - sampleBytes);
  for (const position of new Set([0, Math.floor(last / 2), last])) {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(sampleBytes), 0, sampleBytes, position);
    hash.update(buffer.subarray(0, bytesRead));
  }
  return hash.digest('hex');
}
