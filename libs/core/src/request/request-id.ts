/**
 * Request ids contain their shard (`emoji-sd-01kaj3v0q8…`, `emoji-sd~1-01kaj3v0q8…`), which is the hash tag of all
 * their keys, so any replica finds a request without an index. They also contain their creation time and codes that
 * authenticate them and their owner: this distinguishes expired requests from unknown ids without storing anything.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

const modelIdPattern = /^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$/;
const requestIdPattern =
  /^(?<shard>(?<model>[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?)(?:~[1-9]\d?)?)-(?<ulid>[0-9a-hjkmnp-tv-z]{26})$/;
const crockfordDigits = '0123456789abcdefghjkmnpqrstvwxyz';
/** 5 random bytes and two codes of 20 bits are the 80 random bits of a ULID. */
const entropyBytes = 5;
const entropyDigits = 8;
const codeDigits = 4;

/**
 * Returns whether a model id is valid: 1–64 characters of a–z, 0–9, `.`, `_`, `-`; safe in a URL, a file name and a
 * Redis hash tag.
 */
export function isModelId(value: string): boolean {
  return modelIdPattern.test(value);
}

export interface CreateRequestIdOptions {
  /** Model, or another shard of it. */
  model: string;
  owner: string;
  /** Server secret: `readIdSecret`. */
  secret: string;
  /** Creation time, ms since the epoch; ids of one model sort by it. */
  nowMs: number;
  /** 5 bytes; set by tests that need reproducible ids. */
  entropy?: Uint8Array;
}

/**
 * Creates an id: `<shard>-<ulid>`, the ULID in lower case (https://github.com/ulid/spec: 48 bits of time). The last 40
 * of its 80 random bits are authentication codes: one of this server, one of the owner.
 */
export function createRequestId(options: CreateRequestIdOptions): string {
  const { model, owner, secret, nowMs } = options;
  const entropy: Uint8Array = options.entropy ?? randomBytes(entropyBytes);
  const value = BigInt(Buffer.from(entropy).readUIntBE(0, entropyBytes));
  const id = `${model}-${digitsOf(BigInt(nowMs), 10)}${digitsOf(value, entropyDigits)}`;
  return id + codesOf(id, owner, secret);
}

/**
 * Returns whether this server created the id, for this owner or, if undefined, for any. The chance of a successful
 * guess is 2⁻⁴⁰ with an owner, 2⁻²⁰ without.
 */
export function isOurRequestId(id: string, { owner, secret }: { owner: string | undefined; secret: string }): boolean {
  if (modelOfRequestId(id) === undefined) return false;
  const expected = codesOf(id.slice(0, -2 * codeDigits), owner ?? '', secret);
  const checked = owner === undefined ? codeDigits : 2 * codeDigits;
  const actual = id.slice(-2 * codeDigits);
  return timingSafeEqual(Buffer.from(actual.slice(0, checked)), Buffer.from(expected.slice(0, checked)));
}

/** Returns the shard of an id, or undefined for a string that is no request id. */
export function shardOfRequestId(id: string): string | undefined {
  return requestIdPattern.exec(id)?.groups?.['shard'];
}

/** Returns the model of an id, or undefined for a string that is no request id. */
export function modelOfRequestId(id: string): string | undefined {
  return requestIdPattern.exec(id)?.groups?.['model'];
}

/** Returns the creation time, in milliseconds since the epoch; only for valid ids. */
export function timeOfRequestId(id: string): number {
  let time = 0;
  for (const digit of id.slice(-26, -16)) time = time * 32 + crockfordDigits.indexOf(digit);
  return time;
}

function codesOf(text: string, owner: string, secret: string): string {
  return codeOf(text, secret) + codeOf(`${text} ${owner}`, secret);
}

function codeOf(text: string, secret: string): string {
  const code = createHmac('sha256', secret).update(text).digest().readUInt32BE();
  return digitsOf(BigInt(code), codeDigits);
}

/** Returns the last digits of a number in Crockford's base 32, 5 bits each. */
function digitsOf(value: bigint, length: number): string {
  let digits = '';
  for (let digit = 0, rest = value; digit < length; digit++, rest >>= 5n)
    digits = crockfordDigits.charAt(Number(rest & 31n)) + digits;
  return digits;
}
