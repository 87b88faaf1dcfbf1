import type { RowOutput } from '@darkroom/core';
import type { UpstreamTextInput } from '@darkroom/kinds';
import type { Said } from '../calls/caller.ts';
import { GrowingText, halfCharacter, mostTextEventBytes } from '../upstream/text-pieces.ts';
import type { OutputReader } from './output-reader.ts';
import { isObject, isWhole, unknownField, WrongSaid } from './wrong-said.ts';

/** As the store counts them when it says how much a request may keep there, and some more for a text of few tokens. */
const bytesPerToken = 16;
const spareBytes = 1024;
const mostTokens = 1_000_000_000;

const pieceExpected = 'text, or { text, tokens } with tokens a whole number';
const endExpected =
  'nothing, or { finishReason: "stop" or "length", stop, promptTokens, completionTokens }, of which each may be left out';
const counts = ['promptTokens', 'completionTokens'] as const;

/** Of a text: pieces that are added. */
export class TextReader implements OutputReader {
  readonly most = { said: mostTextEventBytes, returned: 4 * spareBytes };
  readonly #text: GrowingText;
  readonly #maxTokens: number;
  #bytes = 0;

  constructor(input: UpstreamTextInput) {
    this.#text = new GrowingText(input);
    this.#maxTokens = input.maxTokens;
  }

  read(said: unknown): Iterable<Said> {
    const piece = typeof said === 'string' ? { text: said } : said;
    if (!isObject(piece) || typeof piece['text'] !== 'string' || unknownField(piece, ['text', 'tokens']) !== undefined)
      throw new WrongSaid('run gave out', said, pieceExpected);
    const { text, tokens = 1 } = piece as { text: string; tokens?: unknown };
    if (!isWhole(tokens, 0, mostTokens)) throw new WrongSaid('run gave out', said, pieceExpected);
    if (halfCharacter.test(text))
      throw new WrongSaid('run gave out', said, 'text that does not end within a character');
    const most = bytesPerToken * this.#maxTokens + spareBytes;
    this.#bytes += Buffer.byteLength(text);
    if (this.#bytes > most)
      throw new WrongSaid('run wrote a text of', this.#bytes, `at most ${most} bytes for ${this.#maxTokens} tokens`);
    return this.#text.add(text, [], this.#text.done + tokens);
  }

  end(said: unknown): RowOutput {
    const end = said ?? {};
    const names = ['finishReason', 'stop', ...counts];
    if (!isObject(end) || unknownField(end, names) !== undefined)
      throw new WrongSaid('run returned', said, endExpected);
    const { finishReason = 'stop', stop } = end;
    const areCounts = counts.every((name) => end[name] === undefined || isWhole(end[name], 0, mostTokens));
    const isReason = finishReason === 'stop' || finishReason === 'length';
    const isStop = stop === undefined || (typeof stop === 'string' && stop.length <= spareBytes);
    if (!areCounts || !isReason || !isStop) throw new WrongSaid('run returned', said, endExpected);
    const { promptTokens, completionTokens } = end as Record<string, number | undefined>;
    return this.#text.output({
      finish_reason: finishReason,
      ...(stop !== undefined && { stop }),
      ...(promptTokens !== undefined && { prompt_tokens: promptTokens }),
      ...(completionTokens !== undefined && { completion_tokens: completionTokens }),
    });
  }
}
