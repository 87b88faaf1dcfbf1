/** Signed links: give one image to any client that has the link, on servers that require API keys. */
import { checkLink, type LinkParts, signLink } from '@darkroom/core';
import { systemKeys } from '../connection/keys.ts';
import { readSharedSecret } from '../connection/shared-secret.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

export interface SignLinksOptions {
  /** Owner of the request; empty on a server without API keys, where paths stay unsigned. */
  owner: string;
  /**
   * Creation time of the image, or end time of an ended request: results and links are valid for the result TTL from
   * then.
   */
  fromMs: number;
  /** Expiry of the request, if it is known: a pinned request expires later. */
  expiresAtMs?: number | undefined;
}

/** Returns a function that signs paths. No round trip, except for the first call of a process. */
export async function signLinks(
  store: StoreConnection,
  { owner, fromMs, expiresAtMs = fromMs + store.resultTtlMs }: SignLinksOptions,
): Promise<(path: string) => string> {
  if (owner === '') return (path) => path;
  const secret = await secretOf(store);
  return (path) => signLink(path, { secret, untilMs: expiresAtMs });
}

/** Checks a link that `signLinks` of any process made for this path. Round trips as for `signLinks`. */
export async function checkSignedLink(
  store: StoreConnection,
  path: string,
  { nowMs, ...parts }: LinkParts & { nowMs: number },
): Promise<'valid' | 'expired' | 'wrong'> {
  return checkLink(path, parts, { secret: await secretOf(store), nowMs });
}

function secretOf(store: StoreConnection): Promise<string> {
  return readSharedSecret(store, systemKeys(store.prefix).linkSecret);
}
