/**
 * Chooses the next token from logits. Steps and order follow transformers' processors: temperature, top-k, top-p,
 * min-p. Avoids sorting all logits, which takes 20 ms for 49,152: only a few at a border are sorted.
 */
import { numberAt } from '@darkroom/core';
import type { TextInput } from '@darkroom/kinds';
import type { RandomNumbers } from './random-numbers.ts';
import { topLogits, type TopLogits } from './top-tokens.ts';

export type SamplingOptions = Pick<TextInput, 'temperature' | 'topP' | 'topK' | 'minP'>;

/** A token, with its probability among the candidates (0–1). */
export interface ChosenToken {
  readonly id: number;
  readonly probability: number;
}

/** The tokens that may be chosen, in order of their ids. */
export interface Candidates {
  readonly count: number;
  readonly ids: Uint32Array;
  /** Weights proportional to the probabilities; the best token has 1. */
  readonly weights: Float64Array;
  readonly totalWeight: number;
}

/**
 * Returns the token with the highest logit; the first of equals.
 *
 * @returns −1 if a logit is NaN, or none is finite.
 */
export function bestToken(logits: Float32Array): number {
  let best = -1;
  let highest = -Infinity;
  for (let id = 0; id < logits.length; id++) {
    const logit = numberAt(logits, id);
    // Comparisons with NaN are false, so NaN reaches the next check.
    if (logit <= highest) continue;
    if (!(logit < Infinity)) return -1;
    highest = logit;
    best = id;
  }
  return best;
}

/**
 * Draws a token, or returns the best one at temperature 0.
 *
 * @param logits of all tokens; −Infinity excludes a token.
 * @param random one number is drawn from it; none at temperature 0.
 * @returns −1 if a logit is NaN, or none is finite.
 */
export function chooseToken(logits: Float32Array, options: SamplingOptions, random: RandomNumbers): number {
  if (options.temperature === 0) return bestToken(logits);
  const candidates = selectCandidates(logits, options);
  return candidates === undefined ? -1 : chooseAmong(candidates, random).id;
}

/** Chooses as `chooseToken` and adds the probability: at temperature 0, among all tokens. @returns undefined for −1. */
export function chooseRatedToken(
  logits: Float32Array,
  options: SamplingOptions,
  random: RandomNumbers,
): ChosenToken | undefined {
  if (options.temperature !== 0) {
    const candidates = selectCandidates(logits, options);
    return candidates && chooseAmong(candidates, random);
  }
  const id = bestToken(logits);
  return id === -1 ? undefined : { id, probability: probabilityOf(logits, id) };
}

function chooseAmong({ ids, weights, count, totalWeight }: Candidates, random: RandomNumbers): ChosenToken {
  let left = random.next() * totalWeight;
  let at = -1;
  do left -= numberAt(weights, ++at);
  while (left >= 0 && at < count - 1);
  return { id: numberAt(ids, at), probability: numberAt(weights, at) / totalWeight };
}

/** Returns a token's probability among all tokens, at temperature 1. */
function probabilityOf(logits: Float32Array, id: number): number {
  const logit = numberAt(logits, id);
  let total = 0;
  for (let at = 0; at < logits.length; at++) total += Math.exp(numberAt(logits, at) - logit);
  return 1 / total;
}

/**
 * Returns the tokens that pass temperature, top-k, top-p and min-p. The arrays are reused by the next call.
 *
 * @returns undefined if a logit is NaN, or none is finite.
 */
export function selectCandidates(
  logits: Float32Array,
  { temperature, topK, topP, minP }: SamplingOptions,
): Candidates | undefined {
  const { ids, weights } = scratchOf(logits.length);
  const isCut = topK > 0 && topK < logits.length;
  const top = isCut ? topLogits(logits, topK, ids) : allLogits(logits);
  const { highest, lowest } = top;
  if (!Number.isFinite(highest)) return undefined;
  let count = 0;
  for (let at = 0; at < top.count; at++) {
    const id = isCut ? numberAt(ids, at) : at;
    const logit = numberAt(logits, id);
    if (logit < lowest || logit === -Infinity) continue;
    ids[count] = id;
    weights[count] = Math.exp((logit - highest) / temperature);
    count += 1;
  }
  const minWeight = Math.max(topP < 1 ? weightOfNucleus(weights.subarray(0, count), topP) : 0, minP);
  return keepAbove(minWeight, { ids, weights, count });
}

function allLogits(logits: Float32Array): TopLogits {
  const best = bestToken(logits);
  return { highest: best === -1 ? NaN : numberAt(logits, best), lowest: -Infinity, count: logits.length };
}

function keepAbove(minWeight: number, { ids, weights, count }: Omit<Candidates, 'totalWeight'>): Candidates {
  let kept = 0;
  let totalWeight = 0;
  for (let at = 0; at < count; at++) {
    const weight = numberAt(weights, at);
    if (weight < minWeight) continue;
    ids[kept] = numberAt(ids, at);
    weights[kept] = weight;
    totalWeight += weight;
    kept += 1;
  }
  return { ids, weights, count: kept, totalWeight };
}

/** Sums of weights by magnitude. Weights of e⁻³² or less share the last bucket. */
const buckets = new Float64Array(1024);
const bucketsPerNat = 32;

/**
 * Returns the min weight of the nucleus: the smallest set of the heaviest tokens with at least `share` of the total
 * weight. Sums weights per bucket of magnitude and sorts only the bucket at the border; equal weights stay together.
 */
function weightOfNucleus(weights: Float64Array, share: number): number {
  buckets.fill(0);
  let total = 0;
  for (let at = 0; at < weights.length; at++) {
    const weight = numberAt(weights, at);
    const bucket = bucketOf(weight);
    buckets[bucket] = numberAt(buckets, bucket) + weight;
    total += weight;
  }
  let missing = share * total;
  let bucket = 0;
  while (bucket < buckets.length - 1 && missing > numberAt(buckets, bucket)) missing -= numberAt(buckets, bucket++);
  const border = weights.filter((weight) => bucketOf(weight) === bucket).toSorted();
  let at = border.length;
  while (at > 1 && missing > numberAt(border, at - 1)) missing -= numberAt(border, --at);
  return border[at - 1] ?? 0;
}

function bucketOf(weight: number): number {
  return Math.min(Math.floor(-Math.log(weight) * bucketsPerNat), buckets.length - 1);
}

let scratch = { ids: new Uint32Array(0), weights: new Float64Array(0) };

function scratchOf(size: number): typeof scratch {
  if (scratch.ids.length < size) scratch = { ids: new Uint32Array(size), weights: new Float64Array(size) };
  return scratch;
}
