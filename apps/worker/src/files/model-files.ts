import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { LoadModelOptions } from '@darkroom/executor';
import { listLoadedFiles } from './loaded-files.ts';

/** What is read of a file at its beginning, in its middle and at its end, bytes: a header, and of weights some that training changes. */
const sampleBytes = 65_536;

/** What a file was. */
interface Mark {
  mtimeMs: number;
  /** Size and samples. */
  content: string;
}

/** The files that a model was loaded from, and whether they are still what they were. */
export class ModelFiles {
  readonly #options: LoadModelOptions;
  #marks: ReadonlyMap<string, Mark | undefined> = new Map();
  #digest = '';
  #changed: readonly string[] = [];

  constructor(options: LoadModelOptions) {
    this.#options = options;
  }

  /** Of the files as they were marked, without their times: the same on every machine that has the same. Empty before. */
  get digest(): string {
    return this.#digest;
  }

  /** Those that were something else at the last look than when they were marked. */
  get changed(): readonly string[] {
    return this.#changed;
  }

  /**
   * Takes note of what they are. To be called before a load: what is replaced during it counts as changed.
   *
   * @throws DarkroomError `model_unsupported` naming a file that is missing or not whole.
   */
  async mark(): Promise<void> {
    const names = await listLoadedFiles(this.#options);
    this.#marks = new Map(await Promise.all(names.map(async (name) => [name, await this.#markOf(name)] as const)));
    const contents = [...this.#marks].map(([name, mark]) => `${name} ${mark?.content ?? ''}`);
    this.#digest = createHash('sha256').update(contents.join('\n')).digest('hex').slice(0, 16);
    this.#changed = [];
  }

  /** Looks at all of them; some hundred kilobytes are read of each. @returns whether `changed` is another one by it. */
  async look(): Promise<boolean> {
    const marks = this.#marks;
    const names: string[] = [];
    for (const [name, mark] of marks) {
      const now = await this.#markOf(name);
      if (now?.mtimeMs !== mark?.mtimeMs || now?.content !== mark?.content) names.push(name);
    }
    // Marked again meanwhile.
    if (marks !== this.#marks || names.join('\n') === this.#changed.join('\n')) return false;
    this.#changed = names;
    return true;
  }

  /** undefined: it is not there. */
  async #markOf(name: string): Promise<Mark | undefined> {
    let file: FileHandle | undefined;
    try {
      file = await open(join(this.#options.directory, name));
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
