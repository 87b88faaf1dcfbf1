import type { ModelCard } from '@darkroom/core';
import { text, type TextCard } from '@darkroom/kinds';

export interface CapacityOptions {
  /** KV cache per token, bytes; text models only. */
  tokenBytes: number | undefined;
  /** Max. rows per step. */
  batchMaxSize: number;
  /** Cache size in tokens as configured by the operator, if it is. */
  kvTokens: number | undefined;
  availableBytes: number;
}

/** Share of the available memory that KV caches may use. */
const cacheShare = 0.25;
/** Smaller caches hold no useful text. */
const minTokens = 256;

/** A worker's capacity. */
export interface Capacity {
  /** Rows of images, or tokens of KV cache. */
  slots: number;
  /** Tokens that the caches' buffers may hold: rows share buffers padded to the longest row. Undefined for images. */
  memoryTokens?: number;
}

/**
 * Returns a worker's capacity. A text model gets enough tokens for a full batch of full-length texts, or as many as
 * memory allows; then no text may be longer than that.
 */
export function capacityOf(
  card: ModelCard,
  { tokenBytes, batchMaxSize, kvTokens, availableBytes }: CapacityOptions,
): Capacity {
  if (card.kind !== text.id || tokenBytes === undefined) return { slots: batchMaxSize };
  if (kvTokens !== undefined) return { slots: kvTokens, memoryTokens: kvTokens };
  const { maxModelTokens } = card as TextCard;
  const minimum = Math.min(minTokens, maxModelTokens);
  const memoryTokens = Math.max(minimum, Math.floor((cacheShare * availableBytes) / tokenBytes));
  return { slots: Math.min(memoryTokens, batchMaxSize * maxModelTokens), memoryTokens };
}
