import type { BytesAddress } from '@darkroom/core';
import type { ByteStore } from './byte-store.ts';
import { DirectoryBytes } from './directory-bytes.ts';
import { S3Bytes } from './s3-bytes.ts';

/** Opens nothing yet: the first call finds out whether it is there. */
export function openBytes(address: BytesAddress): ByteStore {
  return address.kind === 'directory' ? new DirectoryBytes(address.path) : new S3Bytes(address);
}
