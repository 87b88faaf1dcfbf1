/**
 * Request ids carry their model, and which shard of it they are in: `emoji-sd-01kaj3v0q8…`, `emoji-sd~1-01kaj3v0q8…`. Everything Redis
 * holds for a request lives under that hash tag, so any replica finds it from the id alone, without an index to look up first. They also carry when they
 * were made and a short code of authenticity for whom: an id whose time is over is told from one that never was without
 * keeping anything.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { modelOfShard } from './shard.ts';

const modelIdPattern = /^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$/;
const requestIdPattern =
  /^(?<shard>[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?(?:~[1-9]\d?)?)-(?<ulid>[0-9a-hjkmnp-tv-z]{26})$/;
const crockfordDigits = '0123456789abcdefghjkmnpqrstvwxyz';
/** 5 random bytes and two codes of 20 bits: together the 80 bits that a ULID has beside its time. */
const entropyBytes = 5;
const entropyDigits = 8;
const codeDigits = 4;

/** 1–64 characters of a–z, 0–9, `.`, `_` and `-`, with a letter or digit at both ends: safe in a URL, a file name and a Redis hash tag. */
export function isModelId(value: string): boolean {
  return modelIdPattern.test(value);
}

export interface CreateRequestIdOptions {
  /** A model, which is its first shard, or another shard of it. */
  model: string;
  owner: string;
  /** Known to ourselves only: `readIdSecret`. */
  secret: string;
  /** Milliseconds since the epoch; ids of one model sort by it. */
  nowMs: number;
  /** 5 bytes; given by tests that need the same id twice. */
  entropy?: Uint8Array;
}

/**
 * `<shard>-<ulid>`, the ULID in lower case (https://github.com/ulid/spec: 48 bits of time). The last 40 of its 80 random bits are
 * codes: that it is ours, and that it is this owner's.
 */
export function createRequestId(options: CreateRequestIdOptions): string {
  const { model, owner, secret, nowMs } = options;
  const entropy: Uint8Array = options.entropy ?? randomBytes(entropyBytes);
  const value = entropy.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  const id = `${model}-${digitsOf(BigInt(nowMs), 10)}${digitsOf(value, entropyDigits)}`;
  return id + codesOf(id, owner, secret);
}

/** Whether we have given this id out, however long ago: to this owner, or, without one, to anybody. A guess is right once in 2⁴⁰, and 2²⁰. */
export function isOurRequestId(id: string, { owner, secret }: { owner: string | undefined; secret: string }): boolean {
  if (modelOfRequestId(id) === undefined) return false;
  const expected = codesOf(id.slice(0, -2 * codeDigits), owner ?? '', secret);
  const checked = owner === undefined ? codeDigits : 2 * codeDigits;
  const actual = id.slice(-2 * codeDigits);
  return timingSafeEqual(Buffer.from(actual.slice(0, checked)), Buffer.from(expected.slice(0, checked)));
}

/** The shard an id belongs to, or undefined for a string that was never one of our ids. */
export function shardOfRequestId(id: string): string | undefined {
  return requestIdPattern.exec(id)?.groups?.['shard'];
}

/** The model of that shard. */
export function modelOfRequestId(id: string): string | undefined {
  const shard = shardOfRequestId(id);
  return shard === undefined ? undefined : modelOfShard(shard);
}

/** When it was made, in milliseconds since the epoch; of one of our ids only. */
export function timeOfRequestId(id: string): number {
  const digits = Array.from(id.slice(-26, -16), (digit) => crockfordDigits.indexOf(digit));
  return digits.reduce((time, digit) => time * 32 + digit, 0);
}

function codesOf(text: string, owner: string, secret: string): string {
  return codeOf(text, secret) + codeOf(`${text} ${owner}`, secret);
}

function codeOf(text: string, secret: string): string {
  const code = createHmac('sha256', secret).update(text).digest().readUInt32BE();
  return digitsOf(BigInt(code), codeDigits);
}

/** The last digits of a number, 5 bits each. */
function digitsOf(value: bigint, length: number): string {
  let digits = '';
  for (let digit = 0, rest = value; digit < length; digit++, rest >>= 5n)
    digits = crockfordDigits.charAt(Number(rest & 31n)) + digits;
  return digits;
}
