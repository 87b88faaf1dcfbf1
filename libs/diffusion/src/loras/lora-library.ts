import { DarkroomError } from '@darkroom/core';
import { maxLoraRank, type PictureInput } from '@darkroom/kinds';
import type { ModelLoras } from './model-loras.ts';
import { type LoraSet, loraSetKey, readLoraSet } from './lora-set.ts';

/** Sets that are kept beside those of rows: people try prompts with one style. Each scale is a set of its own. */
const keptSets = 4;
const keptBytes = 128 * 2 ** 20;

type Chosen = NonNullable<PictureInput['loras']>;

/** Reads the adapters that requests ask for. */
export class LoraLibrary {
  readonly #loras: ModelLoras;
  /** In order of use, the oldest first. */
  readonly #kept = new Map<string, LoraSet>();

  constructor(loras: ModelLoras) {
    this.#loras = loras;
  }

  /**
   * What a request's adapters add to the layers.
   *
   * @throws DarkroomError `invalid_request` if the model has them no more, `engine_failed` if a file cannot be read.
   */
  setOf(chosen: Chosen): LoraSet {
    const key = loraSetKey(chosen);
    const set = this.#kept.get(key) ?? this.#read(chosen);
    this.#kept.delete(key);
    this.#kept.set(key, set);
    while (this.#kept.size > keptSets || (this.#kept.size > 0 && bytesOf(this.#kept.values()) > keptBytes))
      this.#kept.delete(this.#kept.keys().next().value!);
    return set;
  }

  #read(chosen: Chosen): LoraSet {
    const { files } = this.#loras;
    const found = chosen.map(({ id, scale }) => {
      const file = files.get(id);
      if (file !== undefined) return { file, scale };
      throw invalid(
        `loras: ${id} is not there; expected ${[...files.keys()].join(', ') || 'none: the model has none'}`,
      );
    });
    const rank = found.reduce((sum, { file }) => sum + file.rank, 0);
    if (rank > maxLoraRank) throw invalid(`loras: their ranks are ${rank} together, expected at most ${maxLoraRank}`);
    return readLoraSet(found);
  }
}

function bytesOf(sets: Iterable<LoraSet>): number {
  let bytes = 0;
  for (const { layers } of sets) for (const { a, b } of layers.values()) bytes += a.byteLength + b.byteLength;
  return bytes;
}

function invalid(message: string): DarkroomError {
  return new DarkroomError('invalid_request', 'diffusion.create-rows', message);
}
