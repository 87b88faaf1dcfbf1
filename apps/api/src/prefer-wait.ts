import { invalidValue } from '@darkroom/core';
import { invalidFields } from './api-error.ts';
import { maxWaitS } from './wait-for-end.ts';

const expected = `wait=<seconds>, of which at most ${maxWaitS} are waited`;

/** How long an answer may take, ms, by a Prefer header (RFC 7240); `wait` alone is as long as we do. 0 without one. */
export function preferredWaitMs(header: string | undefined): number {
  for (const preference of (header ?? '').split(',')) {
    const [name = '', value] = preference.split(';')[0]!.split('=');
    if (name.trim().toLowerCase() !== 'wait') continue;
    if (value === undefined) return maxWaitS * 1000;
    const seconds = value.trim().replace(/^"(.*)"$/, '$1');
    if (!/^\d{1,9}(?:\.\d{1,3})?$/.test(seconds)) throw invalidFields([invalidValue('Prefer', header, expected)]);
    return Math.min(maxWaitS, Number(seconds)) * 1000;
  }
  return 0;
}

/** How long a poll may take, ms, by `?wait=`. */
export function queryWaitMs(text: string | undefined): number {
  if (text === undefined) return 0;
  const seconds = /^\d{1,2}(?:\.\d{1,3})?$/.test(text) ? Number(text) : Infinity;
  if (seconds > maxWaitS) throw invalidFields([invalidValue('wait', text, `seconds from 0 to ${maxWaitS}`)]);
  return seconds * 1000;
}
