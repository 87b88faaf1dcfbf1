/**
 * Request ids carry their model: `emoji-sd-01kaj3v0q8…`. Everything Redis holds for a request lives under its
 * model's hash tag, so any replica finds it from the id alone, without an index to look up first. They also carry when they
 * were made and a short code of authenticity for whom: an id whose time is over is told from one that never was without
 * keeping anything.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

const modelIdPattern = /^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$/;
const requestIdPattern = /^(?<model>[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?)-(?<ulid>[0-9a-hjkmnp-tv-z]{26})$/;
const crockfordDigits = '0123456789abcdefghjkmnpqrstvwxyz';
/** Random bytes, and bytes of the code, 5 bits to a digit: together the 80 bits that a ULID has beside its time. */
const entropyBytes = 5;
const codeBytes = 5;
const codeDigits = 8;

/** 1–64 characters of a–z, 0–9, `.`, `_` and `-`, with a letter or digit at both ends: safe in a URL, a file name and a Redis hash tag. */
export function isModelId(value: string): boolean {
  return modelIdPattern.test(value);
}

/** Whom an id is for, and what says so. */
export interface RequestIdAuthority {
  owner: string;
  /** Known to ourselves only: `readIdSecret`. */
  secret: string;
}

export interface CreateRequestIdOptions extends RequestIdAuthority {
  model: string;
  /** Milliseconds since the epoch; ids of one model sort by it. */
  nowMs: number;
  /** 5 bytes; given by tests that need the same id twice. */
  entropy?: Uint8Array;
}

/** `<model>-<ulid>`, the ULID in lower case (https://github.com/ulid/spec: 48 bits of time), of whose 80 random bits the last 40 are the code. */
export function createRequestId({
  model,
  nowMs,
  entropy = randomBytes(entropyBytes),
  ...authority
}: CreateRequestIdOptions): string {
  const id = `${model}-${digitsOf(BigInt(nowMs), 10)}${digitsOf(valueOf(entropy), codeDigits)}`;
  return id + digitsOf(valueOf(codeOf(id, authority)), codeDigits);
}

/** Whether we have given this id to this owner, however long ago. A guess is right once in 2⁴⁰. */
export function isRequestIdOf(id: string, authority: RequestIdAuthority): boolean {
  if (modelOfRequestId(id) === undefined) return false;
  const expected = digitsOf(valueOf(codeOf(id.slice(0, -codeDigits), authority)), codeDigits);
  return timingSafeEqual(Buffer.from(id.slice(-codeDigits)), Buffer.from(expected));
}

/** The model an id belongs to, or undefined for a string that was never one of our ids. */
export function modelOfRequestId(id: string): string | undefined {
  return requestIdPattern.exec(id)?.groups?.['model'];
}

function codeOf(text: string, { owner, secret }: RequestIdAuthority): Uint8Array {
  return createHmac('sha256', secret).update(`${text} ${owner}`).digest().subarray(0, codeBytes);
}

function valueOf(bytes: Uint8Array): bigint {
  return bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

function digitsOf(value: bigint, length: number): string {
  let digits = '';
  for (let digit = 0, rest = value; digit < length; digit++, rest >>= 5n)
    digits = crockfordDigits.charAt(Number(rest & 31n)) + digits;
  return digits;
}
