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

/** What a worker has room for. */
export interface Room {
  /** Rows of pictures, tokens of cache for texts. */
  slots: number;
  /** Tokens that caches may take the memory of: rows share buffers in which each is as long as the longest. Of pictures undefined. */
  memoryTokens?: number;
}

/**
 * The room of a worker. For texts as many of full length as rows share a step, unless memory is short: then no text may be longer
 * than this.
 */
export function roomOf(card: ModelCard, { tokenBytes, batchMaxSize, kvTokens, availableBytes }: RoomOptions): Room {
  if (card.kind !== text.id || tokenBytes === undefined) return { slots: batchMaxSize };
  if (kvTokens !== undefined) return { slots: kvTokens, memoryTokens: kvTokens };
  const { maxModelTokens } = card as TextCard;
  const least = Math.min(leastTokens, maxModelTokens);
  const memoryTokens = Math.max(least, Math.floor((cacheShare * availableBytes) / tokenBytes));
  return { slots: Math.min(memoryTokens, batchMaxSize * maxModelTokens), memoryTokens };
}
