import type { BytesAddress } from '@darkroom/core';
import type { ByteStore } from './byte-store.ts';
import { DirectoryBytes } from './directory-bytes.ts';
import { S3Bytes } from './s3-bytes.ts';

/** Creates a byte store. Does not connect: an unreachable store fails at the first call. */
export function openBytes(address: BytesAddress): ByteStore {
  return address.kind === 'directory' ? new DirectoryBytes(address.path) : new S3Bytes(address);
}
