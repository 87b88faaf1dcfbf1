import { ClientError } from '@darkroom/client';
import { expect, it } from 'vitest';
import { absenceOf, errorWords } from './error-words.ts';

const error = (status: number | undefined, code: string, message: string, retryAfterS?: number): ClientError =>
  new ClientError({ status, code, message, retryAfterS });

it.each([
  [error(400, 'invalid_value', 'seed is -1, expected more'), 'Seed is -1, expected more.'],
  [
    error(503, 'overloaded', 'Service overloaded, try again later.', 5),
    'Service overloaded, try again later. Try again in 5 s.',
  ],
  [error(429, 'rate_limited', 'too many requests', 30), 'Too many requests. Try again in 30 s.'],
  [error(503, 'unavailable', 'No queue.'), 'No queue.'],
  [error(401, 'invalid_api_key', 'no'), 'The server requires a valid API key.'],
  [error(undefined, 'connection_failed', 'x'), 'The server cannot be reached.'],
  [error(undefined, 'timeout', 'x'), 'The server did not respond in time.'],
  [error(502, 'http_502', 'x'), 'The response (HTTP 502) is not from Darkroom, but probably from a proxy.'],
  [error(200, 'invalid_answer', 'x'), 'The response (HTTP 200) is not from Darkroom, but probably from a proxy.'],
  [new TypeError('oops'), 'Error in the page: TypeError: oops'],
])('describes %s', (reason, words) => {
  expect(errorWords(reason)).toBe(words);
});

it('distinguishes an expired request, an unknown one, and a wrong address', () => {
  expect(absenceOf(error(410, 'request_gone', ''))).toBe('gone');
  expect(absenceOf(error(404, 'request_not_found', ''))).toBe('missing');
  expect(absenceOf(error(404, 'http_404', ''))).toBeUndefined();
});
