import type { ImageRefusal, ImageSize } from './image-refusal.ts';
import type { FittedImage, ImagePart } from './fit-image.ts';

/** Messages to the process that reads image files. After `open`, the file's bytes follow on the process's stdin. */
export type MessageToReader =
  | { type: 'open'; length: number; maxPixels: number; maxCpuMs: number }
  | { type: 'fit'; size: ImageSize; parts: readonly ImagePart[] }
  /** Discards the opened file; has no reply. */
  | { type: 'drop' };

/** Messages from that process: `started` once, then one reply to each `open` and `fit`. */
export type MessageFromReader =
  | { status: 'started' }
  | ({ status: 'read' } & ImageSize)
  | FittedImage
  | ImageRefusal
  /** An internal error; `message` is for the log. */
  | { status: 'failed'; message: string };

/** Exit code of a process that exceeded `maxCpuMs`. */
export const cpuLimitExitCode = 75;
