import { cancelableDelay } from './cancelable-delay.ts';
import type { ClientOptions } from './client-options.ts';

/** The options with all defaults. */
export type ClientContext = Required<Omit<ClientOptions, 'apiKey'>>;

/** A `baseUrl` may end with slashes. */
export function createContext({
  baseUrl,
  // Called without `this`, and looked up late: browsers refuse it on another object, tests replace it.
  fetch = (input, init) => globalThis.fetch(input, init),
  apiKey,
  headers: otherHeaders = {},
  maxRetries = 10,
  timeoutMs = 30_000,
  silenceMs = 45_000,
  delay = cancelableDelay,
  random = Math.random,
}: ClientOptions): ClientContext {
  const base = baseUrl.replace(/\/+$/, '');
  const headers = { ...otherHeaders, ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }) };
  return { baseUrl: base, fetch, headers, maxRetries, timeoutMs, silenceMs, delay, random };
}
