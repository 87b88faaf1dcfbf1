import { DarkroomError, deleteOldest } from '@darkroom/core';
import { maxLoraRank, type ImageInput } from '@darkroom/kinds';
import type { ModelLoras } from './model-loras.ts';
import { type LoraSet, loraSetKey, readLoraSet } from './lora-set.ts';

/**
 * Maximum number of cached sets that no row uses. Users often try many prompts with one style. Each scale makes another
 * set.
 */
const maxCachedSets = 4;
const maxCachedBytes = 128 * 2 ** 20;

/** A request's adapter changes by graph; undefined for a graph that they do not change. */
export interface RequestLoras {
  readonly denoiser: LoraSet | undefined;
  readonly encoders: readonly (LoraSet | undefined)[];
}

type Chosen = NonNullable<ImageInput['loras']>;

/** Reads the adapters of requests, with a cache. */
export class LoraLibrary {
  readonly #loras: ModelLoras;
  /** In order of use, the least recently used first. */
  readonly #cache = new Map<string, RequestLoras>();

  constructor(loras: ModelLoras) {
    this.#loras = loras;
  }

  /**
   * Returns the changes that a request's adapters make.
   *
   * @throws DarkroomError `invalid_request` if the model no longer has an adapter, `engine_failed` if a file cannot be
   * read.
   */
  setOf(chosen: Chosen): RequestLoras {
    const key = loraSetKey(chosen);
    const set = this.#cache.get(key) ?? this.#read(chosen);
    this.#cache.delete(key);
    this.#cache.set(key, set);
    while (this.#cache.size > maxCachedSets || (this.#cache.size > 0 && bytesOf(this.#cache.values()) > maxCachedBytes))
      deleteOldest(this.#cache);
    return set;
  }

  #read(chosen: Chosen): RequestLoras {
    const { files, encoders } = this.#loras;
    const found = chosen.map(({ id, scale }) => {
      const file = files.get(id);
      if (file !== undefined) return { file, scale };
      throw invalid(
        `loras: unknown adapter ${id}; expected ${[...files.keys()].join(', ') || 'none: the model has none'}`,
      );
    });
    const rank = found.reduce((sum, { file }) => sum + file.rank, 0);
    if (rank > maxLoraRank) throw invalid(`loras: their ranks add up to ${rank}, expected at most ${maxLoraRank}`);
    return {
      denoiser: readLoraSet(found, ({ changes }) => changes),
      encoders: encoders.map((_, at) => readLoraSet(found, ({ encoderChanges }) => encoderChanges[at] ?? [])),
    };
  }
}

function bytesOf(requests: Iterable<RequestLoras>): number {
  let bytes = 0;
  for (const { denoiser, encoders } of requests) {
    for (const set of [denoiser, ...encoders])
      for (const { a, b } of set?.layers.values() ?? []) bytes += a.byteLength + b.byteLength;
  }
  return bytes;
}

function invalid(message: string): DarkroomError {
  return new DarkroomError('invalid_request', 'diffusion.create-rows', message);
}
