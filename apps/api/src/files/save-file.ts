import { createHash } from 'node:crypto';
import { imageTypeOf } from '@darkroom/kinds';
import { type FileLimits, type StoredFile, storeFile } from '@darkroom/store';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError, invalidField, retryLater, tooMany } from '../http/api-error.ts';
import type { WithStore } from '../server/store-guard.ts';

/** Maximum files per owner. */
const maxFiles = 100;
/** Maximum bytes per owner, as a multiple of the largest file. */
const maxLargest = 4;

interface SaveFileContext {
  withStore: WithStore;
  config: { ownerMaxBytes: number };
  images: { maxFileBytes: number };
}

/** Stores an uploaded image. Throws 400 if the file is not an image, 429 if its owner exceeds the file limits. */
export async function saveFile(
  context: SaveFileContext,
  owner: string,
  { data, metadata = {}, field }: { data: Uint8Array; metadata?: StoredFile['metadata']; field: string },
): Promise<StoredFile> {
  const contentType = imageTypeOf(data);
  if (contentType === undefined) throw invalidField(field, `${data.byteLength} bytes`, 'a PNG, JPEG or WebP image');
  const sha256 = createHash('sha256').update(data).digest('hex');
  const limits = fileLimits(context);
  const result = await context.withStore((store, callBytes) =>
    storeFile(store, { owner, data, contentType, sha256, metadata }, { ...limits, callBytes }),
  );
  if (result.status === 'stored') return result.file;
  const message = `This key has ${result.files} files (${result.bytes} bytes in total); the limit is ${limits.maxFiles} files and ${limits.maxBytes} bytes: delete some, or wait for them to expire.`;
  throw tooMany('too_many_files', message, retryLater);
}

export function fileNotFound(): ApiError {
  return new ApiError(404, 'file_not_found', 'There is no such file, or it has expired.');
}

/** Returns the file id from the request's path. */
export function fileIdOf(c: ApiCall): string {
  return c.req.param('id') ?? '';
}

/** Returns the limits on the stored uploads of one owner. */
function fileLimits({ config, images }: SaveFileContext): FileLimits {
  const maxBytes = maxLargest * images.maxFileBytes;
  return { maxFiles, maxBytes: config.ownerMaxBytes > 0 ? Math.min(maxBytes, config.ownerMaxBytes) : maxBytes };
}
