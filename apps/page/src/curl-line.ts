import type { PictureRequest } from '@darkroom/client';

export interface CurlLineOptions {
  /** Where the API is, with a slash at the end. */
  baseUrl: string;
  request: PictureRequest;
  /** Then the line takes the key from the shell, so that it can be shown to others. */
  hasKey: boolean;
}

/** A line for a shell that asks for the same pictures again. */
export function curlLine({ baseUrl, request, hasKey }: CurlLineOptions): string {
  const { preview: _, ...shown } = request;
  const words = [
    'curl',
    '-s',
    quoted(new URL('v1/predict', baseUrl).href),
    '-H',
    quoted('content-type: application/json'),
  ];
  if (hasKey) words.push('-H', '"authorization: Bearer $DARKROOM_API_KEY"');
  words.push('-d', quoted(JSON.stringify(shown)));
  return words.join(' ');
}

/** In single quotes a shell takes everything as it is, but for the quote itself. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
