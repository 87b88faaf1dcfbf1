import { pieceView, textOutputFacts } from '@darkroom/kinds';
import type { TextItem } from '../openai/text/follow-texts.ts';
import type { AppendData, BufferSnapshotData, GenerateAnswer } from './generate-schema.ts';

/** A text as it is written. Its events are those of `take`, in order. */
export class GeneratedText {
  #text = '';
  #ids: number[] = [];
  #nfe = 0;
  #finishReason: GenerateAnswer['finish_reason'] = 'length';

  /** Takes note of what comes, and says it in both ways: as what is added, if something is, and as the block that stands there. */
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
      return { append: { token_offset: before, text: '', token_ids: [], nfe: calls, finished: true } };
    }
    const { text, facts, tokenOffset: start } = item;
    const { token_ids = [], nfe } = pieceView(facts);
    // Without blocks each token is a call.
    this.#nfe = nfe ?? start + token_ids.length;
    const said = { text, token_ids, nfe: this.#nfe };
    const snapshot = { absolute_start: start, absolute_end: start + token_ids.length, ...said };
    if (item.type === 'block') return { snapshot };
    this.#text += text;
    for (const id of token_ids) this.#ids.push(id);
    return { append: { token_offset: start, ...said, finished: false }, snapshot };
  }

  /** What has become of it, when it is finished. */
  get answer(): GenerateAnswer {
    return { full_text: this.#text, token_ids: this.#ids, nfe: this.#nfe, finish_reason: this.#finishReason };
  }
}
