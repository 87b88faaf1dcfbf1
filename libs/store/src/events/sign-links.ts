/** Links that give one picture to whoever holds them, where API keys keep everybody else out. */
import { checkLink, type LinkParts, signLink } from '@darkroom/core';
import { systemKeys } from '../connection/keys.ts';
import { readSharedSecret } from '../connection/shared-secret.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

export interface SignLinksOptions {
  /** Whose request it is; empty on a server that asks for no keys: paths stay as they are then. */
  owner: string;
  /** When the picture was there, or the request's end if it has ended: results are kept for their time from then on, and so long the links work. */
  fromMs: number;
}

/** Makes links of paths. No round trip, but for the first of a process. */
export async function signLinks(
  store: StoreConnection,
  { owner, fromMs }: SignLinksOptions,
): Promise<(path: string) => string> {
  if (owner === '') return (path) => path;
  const secret = await secretOf(store);
  return (path) => signLink(path, { secret, untilMs: fromMs + store.resultTtlMs });
}

/** Whether it is a link of `signLinks`, by whichever process, to this path. Round trips: as there. */
export async function checkSignedLink(
  store: StoreConnection,
  path: string,
  { nowMs, ...parts }: LinkParts & { nowMs: number },
): Promise<'valid' | 'expired' | 'wrong'> {
  return checkLink(path, parts, { secret: await secretOf(store), nowMs });
}

async function secretOf(store: StoreConnection): Promise<string> {
  return store.linkSecret ?? readSharedSecret(store, systemKeys(store.prefix).linkSecret);
}
