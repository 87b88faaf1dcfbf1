import { invalidValue } from '@darkroom/core';
import { z } from '@hono/zod-openapi';
import { invalidFields } from '../http/api-error.ts';
import { maxWaitS } from './await-end.ts';

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

/** Seconds from 0 to `maxWaitS`. */
export const queryWait = z.string().regex(/^(?:[0-5]?\d(?:\.\d{1,3})?|60)$/);

/** How long a poll may take, ms, by `?wait=`. */
export function queryWaitMs(text: string | undefined): number {
  if (text === undefined) return 0;
  if (!queryWait.safeParse(text).success)
    throw invalidFields([invalidValue('wait', text, `seconds from 0 to ${maxWaitS}`)]);
  return Number(text) * 1000;
}
