import type { ApiConfig } from '@darkroom/config';
import { OwnerTurns } from '@darkroom/core';
import { ImageReader } from '@darkroom/imaging';
import { FileMemory } from '../body/file-memory.ts';
import { takeTurn, type Waiter } from '../body/take-turn.ts';

/** Images decoded at the same time: decoding takes several times the memory of the pixels. */
const maxConcurrentDecodes = 1;
/** Images of one owner that may wait for decoding. */
const maxWaitingPerOwner = 256;
/** Maximum bytes of a file per pixel: uncompressed red, green, blue and alpha. */
const bytesPerPixel = 4;
/** Bytes of a file besides its pixels, such as a color profile. */
const overheadBytes = 65_536;
/** Maximum wait for memory, and again for decoding. */
const waitMs = 120_000;
/** Connections to servers that clients link to: in all, per owner and per host. */
const maxFetches = 32;
const maxFetchesOfOne = 8;
const maxFetchWaitMs = 30_000;

export type ImageIntake = ReturnType<typeof createImageIntake>;

/** Returns the maximum bytes of a file with this many pixels. */
export function fileBytesOf(pixels: number): number {
  return pixels * bytesPerPixel + overheadBytes;
}

/** Creates the limits of input images and the queues and memory that they share in this process. */
export function createImageIntake({
  maxInputPixels,
  inputAllowPrivate,
}: Pick<ApiConfig, 'maxInputPixels' | 'inputAllowPrivate'>) {
  const maxFileBytes = fileBytesOf(maxInputPixels);
  const fetches = new OwnerTurns({
    concurrency: maxFetches,
    maxHeldBy: (owner) => (owner === '' ? maxFetches : maxFetchesOfOne),
  });
  const fetchesByHost = new OwnerTurns({ concurrency: maxFetches, maxHeldBy: () => maxFetchesOfOne });
  const decoding = new OwnerTurns({ concurrency: maxConcurrentDecodes, maxWaitingPerOwner });
  return {
    maxPixels: maxInputPixels,
    reader: new ImageReader({ maxPixels: maxInputPixels }),
    allowPrivate: inputAllowPrivate,
    /** Limit of one file, and of all files of a form together. */
    maxFileBytes,
    /** Waits for one of the connections of an owner; anonymous clients together may use all. Throws like `takeTurn`. */
    takeFetch: (waiter: Waiter) => takeTurn(fetches, waiter, maxFetchWaitMs),
    /** Waits for one of the connections to a host. Throws like `takeTurn`. */
    takeFetchFrom: (host: string, { signal }: Waiter) =>
      takeTurn(fetchesByHost, { owner: host, signal }, maxFetchWaitMs),
    /** Memory of files. Half of it is the maximum of one owner, and suffices for one request. */
    files: new FileMemory({ maxBytes: 2 * maxFileBytes, maxOwnerBytes: maxFileBytes, waitMs }),
    /** Waits for the owner's turn to decode an image. Throws like `takeTurn`. */
    takeDecodingTurn: (waiter: Waiter) => takeTurn(decoding, waiter, waitMs),
  };
}
