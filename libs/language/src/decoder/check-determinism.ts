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

/** What was found out. */
export interface DeterminismFindings {
  readonly deterministic: TextCard['deterministic'];
  /** Whether tokens that are read one by one leave the same bits in a cache as those that are read in pieces. */
  readonly singlesAsPieces: boolean;
}

/** Tokens of the rows that are tried; what the model has no room for is left out. */
const lengths = [6, 37, 150];

/**
 * Finds out whether a row has the same bits alone, in company, and after its cache was computed anew in another way. That
 * depends on the operators that a graph is made of: the sums of ONNX's Softmax, for instance, are added up in an order that
 * follows the longest row of a call.
 *
 * @throws DarkroomError if the graph cannot be called.
 */
export async function checkDeterminism(options: CheckDeterminismOptions): Promise<DeterminismFindings> {
  const caches: TokenCache[] = [];
  try {
    return await findOut(options, caches);
  } finally {
    for (const cache of caches) options.decoder.releaseCache(cache);
  }
}

/** @param caches to be freed are added to these. */
async function findOut(options: CheckDeterminismOptions, caches: TokenCache[]): Promise<DeterminismFindings> {
  const { decoder, vocabularySize, maxModelTokens, width, isCausal } = options;
  const random = new RandomNumbers(1);
  const idsOf = (count: number) => Array.from({ length: count }, () => Math.floor(random.next() * vocabularySize));
  const fitting = lengths.filter((length) => length + width <= maxModelTokens);
  const rows = fitting.map((length) => ({ prompt: idsOf(length), next: idsOf(width) }));
  const readAll = async (piecesOf: (length: number) => readonly number[]): Promise<DecoderRead[]> => {
    const reads: DecoderRead[] = [];
    for (const { prompt, next } of rows) {
      const cache = decoder.createCache();
      caches.push(cache);
      await readPieces(decoder, { cache, ids: prompt, pieces: piecesOf(prompt.length) });
      reads.push({ cache, ids: next, keeps: false, logitsFrom: 0 });
    }
    return reads;
  };
  const whole = await readAll((length) => [length]);
  const alone: Float32Array[] = [];
  for (const each of whole) alone.push(...(await run(decoder, [each])));
  const isAsAlone = async (reads: readonly DecoderRead[]) =>
    (await run(decoder, reads)).every((logits, at) => hasSameBits(logits, alone[at]!));

  if (!(await isAsAlone(whole))) return spoiledBy('the rows that share its steps');
  // A pipeline whose tokens see those after them cuts its prompts always in the same way.
  if (!isCausal) return { deterministic: { is: true }, singlesAsPieces: false };
  const isPiecewise = await isAsAlone(await readAll((length) => piecesOfLength(length, 32)));
  if (!isPiecewise) return spoiledBy('the pieces in which its tokens are read');
  const singles = await readAll((length) => [length - 4, 1, 1, 1, 1]);
  return { deterministic: { is: true }, singlesAsPieces: await isAsAlone(singles) };
}

function spoiledBy(what: string): DeterminismFindings {
  return { deterministic: { is: false, reason: `the last bits of a row change with ${what}` }, singlesAsPieces: true };
}

/** No piece of a single token. */
function piecesOfLength(length: number, piece: number): number[] {
  if (length <= piece + 1) return [length];
  return [piece, ...piecesOfLength(length - piece, piece)];
}

async function readPieces(
  decoder: Decoder,
  { cache, ids, pieces }: { cache: TokenCache; ids: readonly number[]; pieces: readonly number[] },
): Promise<void> {
  let from = 0;
  for (const count of pieces) {
    await decoder.run([{ cache, ids: ids.slice(from, from + count), keeps: true, logitsFrom: count }]);
    from += count;
  }
}

/** Logits that stay when the decoder is called again. */
async function run(decoder: Decoder, reads: readonly DecoderRead[]): Promise<Float32Array[]> {
  return (await decoder.run(reads)).map((logits) => logits.slice());
}

function hasSameBits(left: Float32Array, right: Float32Array): boolean {
  return left.length === right.length && left.every((value, at) => Object.is(value, right[at]));
}
