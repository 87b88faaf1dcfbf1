import type { TextCard } from '@darkroom/kinds';
import { RandomNumbers } from '../sampling/random-numbers.ts';
import type { Decoder, DecoderRead, TokenCache } from './decoder.ts';

export interface CheckDeterminismOptions {
  decoder: Decoder;
  /** Ids of tokens are below this. */
  vocabularySize: number;
  maxModelTokens: number;
  /** New tokens of a row in a call: 1, or a block's. */
  width: number;
  /** Whether a token sees only those before it, so that it does not matter how a prompt is cut into pieces. */
  isCausal: boolean;
}

/** Tokens of the rows that are tried; what the model has no room for is left out. */
const lengths = [5, 37, 150];
const piece = 32;

/**
 * Finds out whether a row has the same bits alone, in company, and after its cache was computed anew in another way. That
 * depends on the operators that a graph is made of: the sums of ONNX's Softmax, for instance, are added up in an order that
 * follows the longest row of a call.
 *
 * @throws DarkroomError if the graph cannot be called.
 */
export async function checkDeterminism(options: CheckDeterminismOptions): Promise<TextCard['deterministic']> {
  const { decoder, vocabularySize, maxModelTokens, width, isCausal } = options;
  const random = new RandomNumbers(1);
  const idsOf = (count: number) => Array.from({ length: count }, () => Math.floor(random.next() * vocabularySize));
  const fitting = lengths.filter((length) => length + width <= maxModelTokens);
  const rows = fitting.map((length) => ({ prompt: idsOf(length), next: idsOf(width) }));
  const caches = rows.map(() => decoder.createCache());
  for (const [at, { prompt }] of rows.entries()) await read(decoder, caches[at]!, prompt, prompt.length);
  const reads = rows.map(({ next }, at) => ({ cache: caches[at]!, ids: next, keeps: false, logitsFrom: 0 }));
  const alone: Float32Array[] = [];
  for (const each of reads) alone.push(...(await run(decoder, [each])));
  const together = await run(decoder, reads);
  if (!alone.every((logits, at) => hasSameBits(logits, together[at]!)))
    return { is: false, reason: 'the last bits of a row change with the rows that share its steps' };
  if (!isCausal) return { is: true };
  for (const [at, { prompt, next }] of rows.entries()) {
    const cache = decoder.createCache();
    await read(decoder, cache, prompt, piece);
    const [logits] = await run(decoder, [{ cache, ids: next, keeps: false, logitsFrom: 0 }]);
    if (!hasSameBits(logits!, alone[at]!))
      return { is: false, reason: 'the last bits of a row change with the pieces in which its tokens are read' };
  }
  return { is: true };
}

async function read(decoder: Decoder, cache: TokenCache, ids: readonly number[], pieceLength: number): Promise<void> {
  for (let at = 0; at < ids.length; at += pieceLength) {
    const part = ids.slice(at, at + pieceLength);
    await decoder.run([{ cache, ids: part, keeps: true, logitsFrom: part.length }]);
  }
}

/** Logits that stay when the decoder is called again. */
async function run(decoder: Decoder, reads: readonly DecoderRead[]): Promise<Float32Array[]> {
  return (await decoder.run(reads)).map((logits) => logits.slice());
}

function hasSameBits(left: Float32Array, right: Float32Array): boolean {
  return left.length === right.length && left.every((value, at) => Object.is(value, right[at]));
}
