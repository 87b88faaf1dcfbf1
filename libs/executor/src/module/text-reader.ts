import type { RowOutput } from '@darkroom/core';
import type { UpstreamTextInput } from '@darkroom/kinds';
import type { CallEvent } from '../calls/backend-client.ts';
import { GrowingText, unpairedSurrogate, maxTextEventBytes } from '../upstream/text-chunks.ts';
import type { OutputReader, ReaderState } from './output-reader.ts';
import { isObject, isInteger, unknownField, ContractViolation } from './contract-violation.ts';

/** Size limit of a text: the store's figure per token, plus a margin for texts of few tokens. */
const bytesPerToken = 16;
const spareBytes = 1024;
const maxTokenCount = 1_000_000_000;

const chunkExpected = 'text, or { text, tokens } with tokens a whole number';
const endExpected =
  'nothing, or { finishReason: "stop" or "length", stop, promptTokens, completionTokens }, of which each may be left out';
const counts = ['promptTokens', 'completionTokens'] as const;

/** Validates a module's text chunks and its final report. */
export class ModuleTextReader implements OutputReader {
  readonly maxBytes = { yielded: maxTextEventBytes, returned: 4 * spareBytes };
  readonly #text: GrowingText;
  readonly #maxTokens: number;
  #bytes = 0;

  constructor(input: UpstreamTextInput, start?: ReaderState) {
    this.#text = new GrowingText(input, start);
    this.#bytes = Buffer.byteLength(this.#text.text);
    this.#maxTokens = input.maxTokens;
  }

  get state(): ReaderState {
    const { text, done } = this.#text;
    return { text, done };
  }

  read(value: unknown): Iterable<CallEvent> {
    const chunk = typeof value === 'string' ? { text: value } : value;
    if (!isObject(chunk) || typeof chunk['text'] !== 'string' || unknownField(chunk, ['text', 'tokens']) !== undefined)
      throw new ContractViolation('run yielded', value, chunkExpected);
    const { text, tokens = 1 } = chunk as { text: string; tokens?: unknown };
    if (!isInteger(tokens, 0, maxTokenCount)) throw new ContractViolation('run yielded', value, chunkExpected);
    if (unpairedSurrogate.test(text))
      throw new ContractViolation('run yielded', value, 'text that does not end within a character');
    const maxBytes = bytesPerToken * this.#maxTokens + spareBytes;
    this.#bytes += Buffer.byteLength(text);
    if (this.#bytes > maxBytes)
      throw new ContractViolation(
        'run wrote a text of',
        this.#bytes,
        `at most ${maxBytes} bytes for ${this.#maxTokens} tokens`,
      );
    return this.#text.add(text, [], this.#text.done + tokens);
  }

  end(value: unknown): RowOutput {
    const end = value ?? {};
    const names = ['finishReason', 'stop', ...counts];
    if (!isObject(end) || unknownField(end, names) !== undefined)
      throw new ContractViolation('run returned', value, endExpected);
    const { finishReason = 'stop', stop } = end;
    const areCounts = counts.every((name) => end[name] === undefined || isInteger(end[name], 0, maxTokenCount));
    const isReason = finishReason === 'stop' || finishReason === 'length';
    const isStop = stop === undefined || (typeof stop === 'string' && stop.length <= spareBytes);
    if (!areCounts || !isReason || !isStop) throw new ContractViolation('run returned', value, endExpected);
    const { promptTokens, completionTokens } = end as Record<string, number | undefined>;
    return this.#text.output({
      finish_reason: finishReason,
      ...(stop !== undefined && { stop }),
      ...(promptTokens !== undefined && { prompt_tokens: promptTokens }),
      ...(completionTokens !== undefined && { completion_tokens: completionTokens }),
    });
  }
}
