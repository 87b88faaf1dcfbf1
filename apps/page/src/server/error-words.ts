import { ClientError } from '@darkroom/client';

/** Describes an error and its remedy. The API's messages are shown unchanged, as they contain what was expected. */
export function errorWords(error: unknown): string {
  if (!(error instanceof ClientError)) return `Error in the page: ${String(error)}`;
  const { status, code, message, retryAfterS } = error;
  if (status === undefined)
    return code === 'timeout' ? 'The server did not respond in time.' : 'The server cannot be reached.';
  if (status === 401) return 'The server requires a valid API key.';
  if (code.startsWith('http_') || code === 'invalid_answer')
    return `The response (HTTP ${status}) is not from Darkroom, but probably from a proxy.`;
  const words = sentence(message);
  if (status !== 429 && status !== 503) return words;
  return retryAfterS === undefined ? words : `${words} Try again in ${retryAfterS} s.`;
}

/** Returns `gone` if the request has expired, `missing` if the server does not know it. */
export function absenceOf(error: unknown): 'gone' | 'missing' | undefined {
  if (!(error instanceof ClientError)) return undefined;
  if (error.status === 410) return 'gone';
  return error.status === 404 && error.code === 'request_not_found' ? 'missing' : undefined;
}

function sentence(message: string): string {
  const start = message.slice(0, 1).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
}
