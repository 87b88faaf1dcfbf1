import { z } from '@hono/zod-openapi';
import { checkField } from '../http/api-error.ts';
import { maxWaitS } from './await-end.ts';

/**
 * How long an answer may take, ms, by a Prefer header (RFC 7240); `wait` alone is as long as we do. 0 without one, and for
 * one that is not understood, which the RFC has ignored.
 */
export function preferredWaitMs(header: string | undefined): number {
  for (const preference of (header ?? '').split(',')) {
    const [name = '', value] = preference.split(';')[0]!.split('=');
    if (name.trim().toLowerCase() !== 'wait') continue;
    const seconds = value?.trim().replace(/^"(.*)"$/, '$1') ?? String(maxWaitS);
    return /^\d{1,9}(?:\.\d{1,3})?$/.test(seconds) ? Math.min(maxWaitS, Number(seconds)) * 1000 : 0;
  }
  return 0;
}

/** Seconds from 0 to `maxWaitS`. */
export const queryWait = z.string().regex(/^(?:[0-5]?\d(?:\.\d{1,3})?|60)$/);

/** How long a poll may take, ms, by `?wait=`. */
export function queryWaitMs(text = '0'): number {
  return Number(checkField(queryWait, 'wait', text, `seconds from 0 to ${maxWaitS}`)) * 1000;
}
