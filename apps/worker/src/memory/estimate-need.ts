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

/** An engine's process with next to no model, measured on Linux: Node, ONNX Runtime, and what trying a picture takes. */
const processBytes = { text: 100e6, picture: 160e6 };
/** A context of CUDA with its kernels, as its documentation and others' measurements say; not measured. */
const gpuContextBytes = 400e6;
/** Weights of convolutions are INT8 in the file and fp32 in memory; those of products stay as they are. */
const pictureFactor = 2;

/**
 * From the sizes of its files.
 *
 * @param cacheBytes what all its texts together may take; 0 for pictures.
 */
export function estimateNeed(
  card: Pick<ModelCard, 'kind'>,
  { weightBytes, cacheBytes, device }: { weightBytes: number; cacheBytes: number; device: Device },
): MemoryNeed {
  const isText = card.kind === text.id;
  const baseBytes = device === 'cpu' ? processBytes[isText ? 'text' : 'picture'] : gpuContextBytes;
  const estimatedBytes = baseBytes + weightBytes * (isText ? 1 : pictureFactor) + cacheBytes;
  return { leastBytes: weightBytes, estimatedBytes, cacheBytes };
}
