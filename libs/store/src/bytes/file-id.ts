import { randomBytes } from 'node:crypto';

const idPattern = /^file-(?<expiry>[0-9a-z]{8,11})-[\w-]{22}$/;

/** Creates the id of an uploaded file from its expiry time and 128 random bits. */
export function createFileId(expiresAtMs: number): string {
  return `file-${expiresAtMs.toString(36)}-${randomBytes(16).toString('base64url')}`;
}

/** Returns the expiry time of a file by its id (ms since the epoch); undefined if it is no file id. */
export function expiryOfFile(id: string): number | undefined {
  const expiry = idPattern.exec(id)?.groups?.['expiry'];
  return expiry === undefined ? undefined : Number.parseInt(expiry, 36);
}
