import type { ModelCard } from '@darkroom/core';
import { text, type TextCard } from '@darkroom/kinds';

export interface RoomOptions {
  /** Of a text: bytes of cache that each token takes. */
  tokenBytes: number | undefined;
  /** Rows that share a step. */
  batchMaxSize: number;
  /** Tokens of cache, where the operator says so. */
  kvTokens: number | undefined;
  availableBytes: number;
}

/** The part of the memory at hand that caches may grow to. */
const cacheShare = 0.25;
/** With less there is no text worth writing. */
const leastTokens = 256;

/**
 * The slots of a worker: rows of pictures, tokens of cache for texts. As many texts of full length as rows share a step, unless
 * memory is short: then no text may be longer than this.
 */
export function roomOf(card: ModelCard, { tokenBytes, batchMaxSize, kvTokens, availableBytes }: RoomOptions): number {
  if (card.kind !== text.id || tokenBytes === undefined) return batchMaxSize;
  if (kvTokens !== undefined) return kvTokens;
  const { maxModelTokens } = card as TextCard;
  const fitting = Math.floor((cacheShare * availableBytes) / tokenBytes);
  return Math.max(Math.min(leastTokens, maxModelTokens), Math.min(fitting, batchMaxSize * maxModelTokens));
}
