import { ClientError } from '@darkroom/client';

/** What went wrong, and what can be done, for people. The API's own words are good: they say what was expected. */
export function errorWords(error: unknown): string {
  if (!(error instanceof ClientError)) return `The page has a fault: ${String(error)}`;
  const { status, code, message, retryAfterS } = error;
  if (status === undefined)
    return code === 'timeout' ? 'The server did not answer in time.' : 'The server cannot be reached.';
  if (status === 401) return 'The server wants an API key, or a different one.';
  if (code.startsWith('http_') || code === 'invalid_answer')
    return `What answered is not Darkroom (HTTP ${status}): a proxy in between, most likely.`;
  const words = sentence(message);
  if (status !== 429 && status !== 503) return words;
  return retryAfterS === undefined ? words : `${words} It asks to try again in ${retryAfterS} s.`;
}

/** Whether the answer was that this request's time is over, or that there is none. */
export function absenceOf(error: unknown): 'gone' | 'missing' | undefined {
  if (!(error instanceof ClientError)) return undefined;
  if (error.status === 410) return 'gone';
  return error.status === 404 && error.code === 'request_not_found' ? 'missing' : undefined;
}

function sentence(message: string): string {
  const start = message.slice(0, 1).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
}
