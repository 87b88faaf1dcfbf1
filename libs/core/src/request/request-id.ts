/**
 * Request ids carry their model: `emoji-sd-01kaj3v0q8…`. Everything Redis holds for a request lives under its
 * model's hash tag, so any replica finds it from the id alone, without an index to look up first.
 */
import { randomBytes } from 'node:crypto';

const modelIdPattern = /^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$/;
const requestIdPattern = /^(?<model>[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?)-[0-9a-hjkmnp-tv-z]{26}$/;
const crockfordDigits = '0123456789abcdefghjkmnpqrstvwxyz';

/** 1–64 characters of a–z, 0–9, `.`, `_` and `-`, with a letter or digit at both ends: safe in a URL, a file name and a Redis hash tag. */
export function isModelId(value: string): boolean {
  return modelIdPattern.test(value);
}

export interface CreateRequestIdOptions {
  model: string;
  /** Milliseconds since the epoch; ids of one model sort by it. */
  nowMs: number;
  /** 10 bytes of entropy; given by tests that need the same id twice. */
  entropy?: Uint8Array;
}

/** `<model>-<ulid>`, the ULID in lower case (https://github.com/ulid/spec: 48 bits of time, 80 of entropy). */
export function createRequestId({ model, nowMs, entropy = randomBytes(10) }: CreateRequestIdOptions): string {
  let value = BigInt(nowMs);
  for (const byte of entropy) value = (value << 8n) | BigInt(byte);
  let digits = '';
  for (let digit = 0; digit < 26; digit++) {
    digits = crockfordDigits.charAt(Number(value & 31n)) + digits;
    value >>= 5n;
  }
  return `${model}-${digits}`;
}

/** The model an id belongs to, or undefined for a string that was never one of our ids. */
export function modelOfRequestId(id: string): string | undefined {
  return requestIdPattern.exec(id)?.groups?.['model'];
}
