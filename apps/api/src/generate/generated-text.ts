import { pieceView, textOutputFacts } from '@darkroom/kinds';
import type { TextItem } from '../openai/text/follow-texts.ts';
import type { AppendData, BufferSnapshotData, GenerateAnswer } from './generate-schema.ts';

/** Collects a text as it is written. `take` converts each item to events. */
export class GeneratedText {
  readonly #id: string;
  #text = '';
  #ids: number[] = [];
  #nfe = 0;
  #finishReason: GenerateAnswer['finish_reason'] = 'length';

  /** @param id the request id. */
  constructor(id: string) {
    this.#id = id;
  }

  /** Records an item and returns it in both stream modes: as appended text, if any, and as a snapshot of the block. */
  take(item: TextItem): { append?: AppendData; snapshot?: BufferSnapshotData } {
    const before = this.#ids.length;
    if (item.type === 'taken-back') {
      this.#text = this.#text.slice(0, item.length);
      this.#ids = [];
      return {};
    }
    if (item.type === 'finished') {
      const { calls, finish_reason: finishReason } = textOutputFacts(item.output);
      this.#nfe = calls;
      this.#finishReason = finishReason;
      return {
        append: { token_offset: before, text: '', token_ids: [], nfe: calls, finished: true, request_id: this.#id },
      };
    }
    const { text, facts, tokenOffset: start } = item;
    const { token_ids = [], nfe } = pieceView(facts);
    // Autoregressive models need one call per token.
    this.#nfe = nfe ?? start + token_ids.length;
    const common = { text, token_ids, nfe: this.#nfe, request_id: this.#id };
    const snapshot = { absolute_start: start, absolute_end: start + token_ids.length, ...common };
    if (item.type === 'block') return { snapshot };
    this.#text += text;
    for (const id of token_ids) this.#ids.push(id);
    return { append: { token_offset: start, ...common, finished: false }, snapshot };
  }

  /** The answer, once the text is finished. */
  get answer(): GenerateAnswer {
    return {
      full_text: this.#text,
      token_ids: this.#ids,
      nfe: this.#nfe,
      finish_reason: this.#finishReason,
      request_id: this.#id,
    };
  }
}
