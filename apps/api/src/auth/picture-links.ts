/** Links to single pictures, which need no key: handed out in answers to whoever has one. */
import { anyOwner, checkSignedLink } from '@darkroom/store';
import type { ApiContext } from '../context.ts';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import { anybody, type ApiKey } from './api-keys.ts';

/** All that a link can lead to. */
const picturePath = /^\/v1\/predict\/[^/]+\/images\/[^/]+$/;

/** Of whoever holds a link: it was given by the owner of the picture that it names, whoever that is. */
const linkHolder: ApiKey = { ...anybody, name: anyOwner };

/** Whether a call comes by a link. */
export function isByLink(c: ApiCall): boolean {
  const { method, path } = c.req;
  return (method === 'GET' || method === 'HEAD') && picturePath.test(path) && c.req.query('signature') !== undefined;
}

/**
 * Who comes by a link. Throws 403 for one that is not ours or was changed and 410 for one whose time is over, and looks up nothing:
 * neither tells whether there is such a picture.
 */
export async function linkHolderOf(
  c: ApiCall,
  { askStore, clock }: Pick<ApiContext, 'askStore' | 'clock'>,
): Promise<ApiKey> {
  const { expires, signature } = c.req.query();
  const parts = { expires, signature, nowMs: clock.now() };
  switch (await askStore((store) => checkSignedLink(store, c.req.path, parts))) {
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
    'This link is not one of this server, or was changed on the way. A link opens the one picture it names.';
  return new ApiError(403, 'wrong_link', message);
}

export function linkExpired(): ApiError {
  return new ApiError(
    410,
    'link_expired',
    'The time of this link is over. Whoever has the key can ask for the request again.',
  );
}
