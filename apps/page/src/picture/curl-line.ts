import type { PictureRequest } from '@darkroom/client';
import type { Session } from '../server/session.ts';

/**
 * A line for a shell that asks for the same pictures again. It takes the key, if there is one, from the shell, so that
 * it can be shown to others.
 */
export function curlLine({ baseUrl, hasKey }: Pick<Session, 'baseUrl' | 'hasKey'>, request: PictureRequest): string {
  const { preview: _, ...shown } = request;
  const words = ['curl', '-s', quoted(new URL('v1/predict', baseUrl).href)];
  words.push('-H', quoted('content-type: application/json'));
  if (hasKey) words.push('-H', '"authorization: Bearer $DARKROOM_API_KEY"');
  words.push('-d', quoted(JSON.stringify(shown)));
  return words.join(' ');
}

/** In single quotes a shell takes everything as it is, but for the quote itself. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
