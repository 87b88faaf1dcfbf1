import type { Clock } from '@darkroom/core';
import type { Logger } from '@darkroom/service';
import { ApiError } from '../http/api-error.ts';

/** Wrong keys that an address may send per window; further ones get 429. */
export const wrongKeysPerWindow = 10;
const windowMs = 60_000;
/** Addresses that are counted individually per window; all further addresses share one count, to bound the memory. */
const maxAddresses = 10_000;
const others = 'others';

/**
 * Counts wrong keys by address. Valid keys are never limited, because many clients may share an address. This is safe:
 * keys have at least 16 characters and cannot be guessed.
 */
export class WrongKeyLimit {
  readonly #clock: Clock;
  readonly #log: Logger;
  #counts = new Map<string, number>();
  #windowEndsAtMs = -Infinity;

  constructor({ clock, log }: { clock: Clock; log: Logger }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Counts a wrong key. Returns undefined up to the limit, and beyond it the error to return instead of 401. */
  count(address: string): ApiError | undefined {
    const nowMs = this.#clock.now();
    if (nowMs >= this.#windowEndsAtMs) {
      this.#counts = new Map();
      this.#windowEndsAtMs = nowMs + windowMs;
    }
    const network = networkOf(address);
    const name = this.#counts.has(network) || this.#counts.size < maxAddresses ? network : others;
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    if (count <= wrongKeysPerWindow) return undefined;
    if (count === wrongKeysPerWindow + 1) this.#log.warn({ address: name }, 'too many wrong API keys from an address');
    return tooManyWrongKeys(Math.ceil((this.#windowEndsAtMs - nowMs) / 1000));
  }
}

/** Returns the address, or for IPv6 its /64, which usually belongs to one subscriber. */
function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address;
  const [head = '', tail] = address.split('::');
  const headGroups = head.split(':').filter((group) => group !== '');
  const tailGroups = tail === undefined ? [] : tail.split(':').filter((group) => group !== '');
  const zeros = Array.from({ length: Math.max(0, 8 - headGroups.length - tailGroups.length) }, () => '0');
  return [...headGroups, ...zeros, ...tailGroups].slice(0, 4).join(':');
}

export function tooManyWrongKeys(retryS: number): ApiError {
  const message = `Too many wrong API keys from your address, try again in ${retryS} s.`;
  return new ApiError(429, 'too_many_wrong_keys', message, { headers: { 'Retry-After': String(retryS) } });
}
