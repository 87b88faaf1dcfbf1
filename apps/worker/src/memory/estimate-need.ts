import type { Device } from '@darkroom/core';
import type { EngineKind } from '@darkroom/executor';

/** Estimated memory of a model that was not loaded and measured yet. */
export interface MemoryNeed {
  /** Lower bound, bytes. */
  minBytes: number;
  /** Expected use, bytes. */
  estimatedBytes: number;
  /** Part of the estimate for caches, which grow while requests run, bytes. */
  cacheBytes: number;
}

/** Engine process without weights and without a model, bytes; measured on Linux. */
const minProcessBytes = 45e6;
/** CUDA context with kernels, bytes; from NVIDIA's documentation and published measurements, not measured here. */
const gpuContextBytes = 400e6;

/**
 * Estimates the memory of a model from the sizes of its files.
 *
 * @param cacheBytes caches at full capacity.
 */
export function estimateNeed(
  { processBytes, weightFactor }: EngineKind['memory'],
  { weightBytes, cacheBytes, device }: { weightBytes: number; cacheBytes: number; device: Device },
): MemoryNeed {
  const isOnCpu = device === 'cpu';
  const estimatedBytes = (isOnCpu ? processBytes : gpuContextBytes) + weightBytes * weightFactor + cacheBytes;
  return { minBytes: weightBytes + (isOnCpu ? minProcessBytes : 0), estimatedBytes, cacheBytes };
}
