import type { RequestSnapshot } from '@darkroom/core';
import { imageKind, type ImageAttachment, type ImageInput, type UpstreamTextInput } from '@darkroom/kinds';
import { readAttachment, readOutput, readRequest } from '@darkroom/store';
import type { WithStore } from '../server/store-guard.ts';
import { fileBytesOf, type ImageIntake } from './image-intake.ts';
import type { FileWaiter } from '../body/file-memory.ts';

/** Stores of input images, and the limits on them. */
export interface ImageSources {
  withStore: WithStore;
  images: ImageIntake;
  config: { publicUrl?: string };
}

export type StoredImageResult =
  /** `release` frees the memory of the bytes. */
  | { status: 'read'; bytes: Uint8Array; release: () => void }
  /** Unknown, expired or of another owner. */
  | { status: 'missing' }
  | { status: 'refused'; came: string; expected: string };

/** Metadata of a stored image; width and height are numbers if known. */
interface ImageMetadata {
  width?: unknown;
  height?: unknown;
  /** Upper bound of the file size. */
  bytes: number;
}

/**
 * Paths of inputs and outputs of a request, behind any prefix of a proxy. The query of signed links is ignored: the
 * owner is checked instead.
 */
const pathPattern =
  /^(?:\/[\w.~-]{1,64}){0,8}?\/v1\/predict\/(?<id>[^/]{1,128})\/(?:inputs\/(?<name>image(?:-\d{1,2})?|mask)|images\/(?<index>\d{1,3}))(?:\?.*)?$/;

/** Reads the image at a path of this server, after its size was checked and memory for it is reserved. */
export async function readStoredImage(
  { withStore, images }: Pick<ImageSources, 'withStore' | 'images'>,
  path: string,
  waiter: FileWaiter,
): Promise<StoredImageResult> {
  const { id = '', name, index } = pathPattern.exec(path)?.groups ?? {};
  const found = await withStore((store) => readRequest(store, id, waiter.owner));
  const metadata = found.status === 'found' ? metadataOf(found.request, { name, index: Number(index) }) : undefined;
  if (metadata === undefined) return { status: 'missing' };
  const { width, height, bytes: maxBytes } = metadata;
  if (Number(width) * Number(height) > images.maxPixels)
    return refused(`${String(width)}x${String(height)} pixels`, `at most ${images.maxPixels} pixels`);
  if (maxBytes > images.maxFileBytes) return refused(`${maxBytes} bytes`, `at most ${images.maxFileBytes} bytes`);
  const memory = images.files.open(maxBytes, waiter);
  const release = (): void => memory.free();
  try {
    await memory.grow(maxBytes);
    const bytes = await withStore(async (store) =>
      name === undefined ? (await readOutput(store, id, Number(index)))?.data : readAttachment(store, id, name),
    );
    memory.complete(bytes?.byteLength ?? 0);
    return bytes === undefined ? { status: 'missing' } : { status: 'read', bytes, release };
  } catch (error) {
    release();
    throw error;
  }
}

function refused(came: string, expected: string): StoredImageResult {
  return { status: 'refused', came, expected };
}

function metadataOf(
  { kind, input, outputs }: RequestSnapshot,
  { name, index }: { name: string | undefined; index: number },
): ImageMetadata | undefined {
  if (kind !== imageKind.id) {
    const size = name === undefined ? undefined : (input as Partial<UpstreamTextInput>).images?.[indexOfInput(name)];
    return size && { ...size, bytes: fileBytesOf(size.width * size.height) };
  }
  if (name === undefined) return outputs.find((output) => output.index === index);
  // Stored inputs have the size of the output.
  const { width, height, ...given } = input as ImageInput;
  return given[name as ImageAttachment] === true ? { width, height, bytes: fileBytesOf(width * height) } : undefined;
}

/** Returns the index of an input such as `image-2`; NaN for other names. */
function indexOfInput(name: string): number {
  return Number(/^image-(?<index>\d+)$/.exec(name)?.groups?.['index'] ?? NaN);
}
