import type { Device, ModelCard } from '@darkroom/core';
import { text } from '@darkroom/kinds';

/** What a model takes of the memory before it was ever loaded and measured. */
export interface MemoryNeed {
  /** Less will never do, bytes. */
  leastBytes: number;
  /** What it is thought to take, bytes. */
  estimatedBytes: number;
  /** Of that, caches that grow while texts are written. */
  cacheBytes: number;
}

/** An engine's process, measured on Linux: without a model, and with next to none, which was tried. */
const processBytes = { least: 45e6, text: 100e6, picture: 160e6 };
/** A context of CUDA with its kernels, as its documentation and others' measurements say; not measured. */
const gpuContextBytes = 400e6;
/** Weights of convolutions are INT8 in the file and fp32 in memory; those of products stay as they are. */
const pictureFactor = 2;

/**
 * From the sizes of its files.
 *
 * @param cacheBytes what as many texts take as it has room for; 0 for pictures.
 */
export function estimateNeed(
  card: Pick<ModelCard, 'kind'>,
  { weightBytes, cacheBytes, device }: { weightBytes: number; cacheBytes: number; device: Device },
): MemoryNeed {
  const isText = card.kind === text.id;
  const isOnCpu = device === 'cpu';
  const baseBytes = isOnCpu ? processBytes[isText ? 'text' : 'picture'] : gpuContextBytes;
  const estimatedBytes = baseBytes + weightBytes * (isText ? 1 : pictureFactor) + cacheBytes;
  return { leastBytes: weightBytes + (isOnCpu ? processBytes.least : 0), estimatedBytes, cacheBytes };
}
