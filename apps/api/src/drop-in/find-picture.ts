import type { RequestStatus } from '@darkroom/core';
import { picture } from '@darkroom/kinds';
import type { Context } from 'hono';
import { findRequest, requestIdOf } from '../follow/find-request.ts';
import type { ApiEnv } from '../http/api-env.ts';
import { requestNotFound } from '../http/api-error.ts';
import type { AskStore } from '../server/store-guard.ts';

/** The request that a path names. Throws as `findRequest`, and 404 for one of anything but pictures or of another model. */
export async function findPicture(askStore: AskStore, c: Context<ApiEnv>, model?: string): Promise<RequestStatus> {
  const id = requestIdOf(c);
  const request = await findRequest(askStore, id, c.get('owner'));
  if (request.kind !== picture.id || request.model !== (model ?? request.model)) throw requestNotFound(id);
  return request;
}
