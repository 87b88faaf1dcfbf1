import type { RequestEnvelope, RowOutput } from '@darkroom/core';
import type { EncodedOutput, EngineKind } from '@darkroom/executor';

/** The part of `EngineKinds` that encodes. */
export interface EncodingKinds {
  of(id: string): Pick<EngineKind, 'encode' | 'encodePreview'>;
}

/** Encodes outputs and previews by the kinds of their requests. */
export class OutputEncoder {
  readonly #kinds: EncodingKinds;
  /** Previews of the current step. */
  #previews: Promise<unknown>[] = [];

  constructor(kinds: EncodingKinds) {
    this.#kinds = kinds;
  }

  async encode(output: RowOutput, request: RequestEnvelope): Promise<EncodedOutput> {
    return this.#kinds.of(request.kind).encode(output, request);
  }

  /** Encodes a preview; those of one step resolve together, so that writing them takes one call to Redis. */
  async encodePreview(preview: RowOutput, { kind }: RequestEnvelope): Promise<EncodedOutput | undefined> {
    const encoding = this.#kinds.of(kind).encodePreview?.(preview);
    const previews = this.#previews;
    previews.push(Promise.resolve(encoding));
    // After this microtask, all previews of the step are in the list.
    await Promise.resolve();
    if (this.#previews === previews) this.#previews = [];
    await Promise.allSettled(previews);
    return encoding;
  }
}
