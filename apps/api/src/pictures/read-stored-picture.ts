import type { RequestStatus } from '@darkroom/core';
import { picture, type PictureAttachment, type PictureInput } from '@darkroom/kinds';
import { readAttachment, readOutput, readRequest } from '@darkroom/store';
import type { ApiContext } from '../context.ts';
import { fileBytesOf } from './picture-door.ts';
import type { LetGo, Waiter } from './waiting-line.ts';

export type StoredPictureResult =
  /** `letGo`: of the room that the bytes take. */
  | { status: 'read'; bytes: Uint8Array; letGo: LetGo }
  /** It is not there, or not its owner's. */
  | { status: 'missing' }
  | { status: 'refused'; came: string; expected: string };

/** What is known of a picture before it is read; numbers where they are known. */
interface Facts {
  width?: unknown;
  height?: unknown;
  /** At most. */
  bytes: number;
}

/** Paths of what a request began with, and of what it has made; links, too, of which only the path counts: its owner asks. */
const pathPattern =
  /^\/v1\/predict\/(?<id>[^/]{1,128})\/(?:inputs\/(?<name>image|mask)|images\/(?<index>\d{1,3}))(?:\?.*)?$/;

/** The picture at a path of this server. Nothing of it is read before its size is known to be taken, and before there is room for it. */
export async function readStoredPicture(
  { askStore, pictures }: Pick<ApiContext, 'askStore' | 'pictures'>,
  path: string,
  waiter: Waiter,
): Promise<StoredPictureResult> {
  const { id = '', name, index } = pathPattern.exec(path)?.groups ?? {};
  const found = await askStore((store) => readRequest(store, id, waiter.owner));
  const facts = found.status === 'found' ? factsOf(found.request, { name, index: Number(index) }) : undefined;
  if (facts === undefined) return { status: 'missing' };
  const { width, height, bytes: most } = facts;
  if (Number(width) * Number(height) > pictures.maxPixels)
    return refused(`${String(width)}x${String(height)} pixels`, `at most ${pictures.maxPixels} pixels`);
  if (most > pictures.maxFileBytes) return refused(`${most} bytes`, `at most ${pictures.maxFileBytes} bytes`);
  const letGo = await pictures.files.take(most, waiter);
  try {
    const bytes = await askStore(async (store) =>
      name === undefined ? (await readOutput(store, id, Number(index)))?.data : readAttachment(store, id, name),
    );
    letGo(bytes?.byteLength);
    return bytes === undefined ? { status: 'missing' } : { status: 'read', bytes, letGo };
  } catch (error) {
    letGo();
    throw error;
  }
}

function refused(came: string, expected: string): StoredPictureResult {
  return { status: 'refused', came, expected };
}

function factsOf(
  { kind, input, outputs }: RequestStatus,
  { name, index }: { name: string | undefined; index: number },
): Facts | undefined {
  if (kind !== picture.id) return undefined;
  if (name === undefined) return outputs.find((output) => output.index === index);
  // It was fitted to what is drawn.
  const { width, height, ...given } = input as PictureInput;
  return given[name as PictureAttachment] === true ? { width, height, bytes: fileBytesOf(width * height) } : undefined;
}
