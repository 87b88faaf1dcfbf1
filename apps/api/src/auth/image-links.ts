/** Signed links to single images, which open without a key. */
import type { Clock } from '@darkroom/core';
import { anyOwner, checkSignedLink, signLinks, type SignLinksOptions } from '@darkroom/store';
import type { ApiCall, ApiKey } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import type { WithStore } from '../server/store-guard.ts';
import { anonymousKey } from './api-keys.ts';

/** Paths that a link can open. */
const imagePath = /^\/v1\/predict\/[^/]+\/images\/[^/]+$/;

/** Key of a call by link: matches any owner, since the signature proves the owner's consent. */
const linkHolder: ApiKey = { ...anonymousKey, name: anyOwner };

/** Returns a function that signs image URLs for their owner, so that they open without the API key. */
export async function imageLinks(
  withStore: WithStore,
  { pathPrefix = '', ...options }: SignLinksOptions & { pathPrefix?: string },
): Promise<(path: string) => string> {
  // Servers without keys sign no links.
  if (options.owner === '') return (path) => `${pathPrefix}${path}`;
  const sign = await withStore((store) => signLinks(store, options));
  // A proxy removes the prefix, so only the path behind it is signed.
  return (path) => `${pathPrefix}${sign(path)}`;
}

/** Returns true for a call by a signed link. */
export function isSignedLink(c: ApiCall): boolean {
  const { method, path } = c.req;
  return (method === 'GET' || method === 'HEAD') && imagePath.test(path) && c.req.query('signature') !== undefined;
}

/**
 * Checks a signed link and returns the key for its call. Throws 403 for an invalid signature and 410 for an expired
 * link. Looks up no image, so errors do not reveal whether it exists.
 */
export async function linkHolderOf(
  c: ApiCall,
  { withStore, clock }: { withStore: WithStore; clock: Clock },
): Promise<ApiKey> {
  const { expires, signature } = c.req.query();
  const parts = { expires, signature, nowMs: clock.now() };
  switch (await withStore((store) => checkSignedLink(store, c.req.path, parts))) {
    case 'valid':
      return linkHolder;
    case 'expired':
      throw linkExpired();
    case 'wrong':
      throw wrongLink();
  }
}

export function wrongLink(): ApiError {
  const message =
    'The signature of this link is invalid, expected an unmodified link of this server. A link opens one image only.';
  return new ApiError(403, 'wrong_link', message);
}

export function linkExpired(): ApiError {
  return new ApiError(
    410,
    'link_expired',
    'This link has expired. Poll the request with the API key to get a new one.',
  );
}
