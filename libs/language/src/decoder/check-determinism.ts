import { pairUp } from '@darkroom/core';
import type { TextCard } from '@darkroom/kinds';
import { RandomNumbers } from '../sampling/random-numbers.ts';
import type { Decoder, DecoderRead, TokenCache } from './decoder.ts';

export interface CheckDeterminismOptions {
  decoder: Decoder;
  /** Token ids are below this. */
  vocabularySize: number;
  maxModelTokens: number;
  /** New tokens of a row per call: 1, or a block. */
  width: number;
  /** True if a token sees only earlier ones, so that prompts may be split into chunks anywhere. */
  isCausal: boolean;
}

/** Result of the check. */
export interface DeterminismFindings {
  readonly deterministic: TextCard['deterministic'];
  /** True if tokens read one by one leave the same bits in a cache as tokens read in chunks. */
  readonly singlesMatchChunks: boolean;
}

/** Prompt lengths to test, in tokens; those beyond the model's limit are left out. */
const lengths = [6, 37, 150];

/**
 * Checks whether a row has the same bits alone, in a batch, and after its cache was recomputed in other chunks. That
 * depends on the graph's operators: ONNX's Softmax, for one, sums in an order that follows the longest row of a call.
 *
 * @throws DarkroomError if the graph cannot be called.
 */
export async function checkDeterminism(options: CheckDeterminismOptions): Promise<DeterminismFindings> {
  const caches: TokenCache[] = [];
  try {
    return await runChecks(options, caches);
  } finally {
    for (const cache of caches) options.decoder.releaseCache(cache);
  }
}

/** @param caches receives the created caches, for the caller to release. */
async function runChecks(options: CheckDeterminismOptions, caches: TokenCache[]): Promise<DeterminismFindings> {
  const { decoder, vocabularySize, maxModelTokens, width, isCausal } = options;
  const random = new RandomNumbers(1);
  const idsOf = (count: number) => Array.from({ length: count }, () => Math.floor(random.next() * vocabularySize));
  const fitting = lengths.filter((length) => length + width <= maxModelTokens);
  const rows = fitting.map((length) => ({ prompt: idsOf(length), next: idsOf(width) }));
  const readAll = async (chunksOf: (length: number) => readonly number[]): Promise<DecoderRead[]> => {
    const reads: DecoderRead[] = [];
    for (const { prompt, next } of rows) {
      const cache = decoder.createCache();
      caches.push(cache);
      await readChunks(decoder, { cache, ids: prompt, chunks: chunksOf(prompt.length) });
      reads.push({ cache, ids: next, keeps: false, logitsFrom: 0 });
    }
    return reads;
  };
  const whole = await readAll((length) => [length]);
  const alone: Float32Array[] = [];
  for (const each of whole) alone.push(...(await run(decoder, [each])));
  const isAsAlone = async (reads: readonly DecoderRead[]) =>
    pairUp(await run(decoder, reads), alone).every(([logits, expected]) => hasSameBits(logits, expected));

  if (!(await isAsAlone(whole))) return nondeterministic('the rows that share its steps');
  // A pipeline whose tokens see later ones always splits its prompts in the same way.
  if (!isCausal) return { deterministic: { is: true }, singlesMatchChunks: false };
  const matchesInChunks = await isAsAlone(await readAll((length) => chunksOfLength(length, 32)));
  if (!matchesInChunks) return nondeterministic('the chunks in which its tokens are read');
  const singles = await readAll((length) => [length - 4, 1, 1, 1, 1]);
  return { deterministic: { is: true }, singlesMatchChunks: await isAsAlone(singles) };
}

function nondeterministic(what: string): DeterminismFindings {
  return {
    deterministic: { is: false, reason: `the last bits of a row change with ${what}` },
    singlesMatchChunks: true,
  };
}

/** Splits a length into chunks, none of a single token. */
function chunksOfLength(length: number, chunk: number): number[] {
  if (length <= chunk + 1) return [length];
  return [chunk, ...chunksOfLength(length - chunk, chunk)];
}

async function readChunks(
  decoder: Decoder,
  { cache, ids, chunks }: { cache: TokenCache; ids: readonly number[]; chunks: readonly number[] },
): Promise<void> {
  let from = 0;
  for (const count of chunks) {
    await decoder.run([{ cache, ids: ids.slice(from, from + count), keeps: true, logitsFrom: count }]);
    from += count;
  }
}

/** Returns copies of the logits, which the next call would overwrite. */
async function run(decoder: Decoder, reads: readonly DecoderRead[]): Promise<Float32Array[]> {
  return (await decoder.run(reads)).map((logits) => logits.slice());
}

function hasSameBits(left: Float32Array, right: Float32Array): boolean {
  return left.length === right.length && left.every((value, at) => Object.is(value, right[at]));
}
