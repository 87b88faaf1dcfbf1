import type { Device, ModelCard } from '@darkroom/core';
import { text } from '@darkroom/kinds';

/** Estimated memory of a model that was not loaded and measured yet. */
export interface MemoryNeed {
  /** Lower bound, bytes. */
  minBytes: number;
  /** Expected use, bytes. */
  estimatedBytes: number;
  /** Part of the estimate for KV caches, which grow while texts are generated, bytes. */
  cacheBytes: number;
}

/** Engine process without weights, bytes; measured on Linux without a model and with tiny ones. */
const processBytes = { least: 45e6, text: 100e6, image: 160e6 };
/** CUDA context with kernels, bytes; from NVIDIA's documentation and published measurements, not measured here. */
const gpuContextBytes = 400e6;
/** Convolution weights are INT8 in the file and fp32 in memory; MatMul weights stay as they are. */
const imageFactor = 2;

/**
 * Estimates the memory of a model from the sizes of its files.
 *
 * @param cacheBytes KV cache at full capacity; 0 for images.
 */
export function estimateNeed(
  card: Pick<ModelCard, 'kind'>,
  { weightBytes, cacheBytes, device }: { weightBytes: number; cacheBytes: number; device: Device },
): MemoryNeed {
  const isText = card.kind === text.id;
  const isOnCpu = device === 'cpu';
  const baseBytes = isOnCpu ? processBytes[isText ? 'text' : 'image'] : gpuContextBytes;
  const estimatedBytes = baseBytes + weightBytes * (isText ? 1 : imageFactor) + cacheBytes;
  return { minBytes: weightBytes + (isOnCpu ? processBytes.least : 0), estimatedBytes, cacheBytes };
}
