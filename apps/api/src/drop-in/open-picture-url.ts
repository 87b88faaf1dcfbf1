import type { OutputInfo } from '@darkroom/core';
import { imageUrl } from '@darkroom/kinds';
import { readOutput } from '@darkroom/store';
import type { Context } from 'hono';
import { absoluteUrl } from '../http/urls.ts';
import type { ApiEnv } from '../http/api-env.ts';
import type { AskStore } from '../server/store-guard.ts';
import { requestGone } from '../http/api-error.ts';

export interface OpenPictureUrlOptions {
  id: string;
  output: OutputInfo;
  /** Some clients make nothing of the others. */
  onlyHttps?: boolean;
}

/**
 * A URL that opens a picture for whoever holds it. The clients of other APIs fetch pictures without a key, so where the
 * image route asks for one this is the picture itself as a `data:` URL, and so it is over http with `onlyHttps`.
 */
export async function openPictureUrl(
  c: Context<ApiEnv>,
  askStore: AskStore,
  { id, output, onlyHttps = false }: OpenPictureUrlOptions,
): Promise<string> {
  const url = absoluteUrl(c, imageUrl(id, output.index));
  if (c.get('owner') === '' && (!onlyHttps || url.startsWith('https:'))) return url;
  const stored = await askStore((store) => readOutput(store, id, output.index));
  if (stored === undefined) throw requestGone(id);
  return `data:${output.contentType};base64,${stored.data.toString('base64')}`;
}
