/** One request to an untrusted server. */
import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { isPublicAddress, mayBePublicHost } from '@darkroom/core';
import { createHostResolver, type Resolve } from './resolve-host.ts';

export interface GuardedRequestOptions {
  url: string;
  method: 'GET' | 'POST';
  headers: Readonly<Record<string, string>>;
  body?: string;
  /** Aborts the request and the reading of its answer. */
  signal: AbortSignal;
  /** Allows private, loopback and other non-public addresses. */
  allowPrivate: boolean;
  /** Replaces the resolver; for tests. */
  resolve?: Resolve | undefined;
}

/**
 * `refused`: the address is not public; nothing was sent. `failed`: no answer; the reason contains no internal details.
 */
export type GuardedResult<Read> =
  | { status: 'answered'; code: number; read: Read }
  | { status: 'refused' }
  | { status: 'failed'; reason: string };

/**
 * Sends a request with Node's own client, which follows no redirects and takes a `lookup`, so that the checked address
 * is the one connected to. Each call uses a new connection, which is closed when `read` is done.
 *
 * @param read reads the answer; an error that it throws becomes a failure, like a broken connection.
 */
export async function guardedRequest<Read>(
  { url, method, headers, body, signal, allowPrivate, resolve }: GuardedRequestOptions,
  read: (response: IncomingMessage) => Promise<Read>,
): Promise<GuardedResult<Read>> {
  const target = new URL(url);
  // IP addresses in URLs bypass the lookup, so check them here.
  if (!allowPrivate && !mayBePublicHost(target.hostname)) return { status: 'refused' };
  const lookup = createGuardedLookup({ allowPrivate, resolve });
  const send = target.protocol === 'https:' ? httpsRequest : httpRequest;
  const request = send(target, { lookup, method, agent: false, headers, signal });
  // Errors after the answer, such as a reset, must not end the process.
  request.on('error', () => {});
  // Without a listener, Node closes the connection after a 101 and emits neither an answer nor an error.
  request.on('upgrade', (response, socket) => {
    socket.destroy();
    request.emit('response', response);
  });
  try {
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return { status: 'answered', code: response.statusCode ?? 0, read: await read(response) };
  } catch (error) {
    if (error instanceof PrivateAddressError) return { status: 'refused' };
    return { status: 'failed', reason: reasonOf(error) };
  } finally {
    request.destroy();
  }
}

const reasons: Readonly<Record<string, string>> = {
  ABORT_ERR: 'no answer in time',
  ETIMEDOUT: 'no answer in time',
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection closed without an answer',
  EPIPE: 'connection closed without an answer',
  ENOTFOUND: 'host name not found',
  ETIMEOUT: 'host name not found in time',
  EHOSTUNREACH: 'host not reachable',
  ENETUNREACH: 'host not reachable',
  EPROTO: 'TLS failed',
};

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  // With several addresses, use the first error.
  const first = error instanceof AggregateError ? (error.errors[0] as unknown) : undefined;
  if (first !== undefined && reasons[code] === undefined) return reasonOf(first);
  if (/CERT|SSL|TLS|SIGNATURE/.test(code)) return 'TLS failed';
  if (code.startsWith('HPE_')) return 'the answer is not HTTP';
  return reasons[code] ?? 'connection failed';
}

/** The host name has no address that we may connect to. */
class PrivateAddressError extends Error {
  override name = 'PrivateAddressError';
}

const resolveHost = createHostResolver();

/**
 * Creates the `lookup` of a connection, which yields only public addresses unless private ones are allowed. The
 * connection uses exactly these addresses, so DNS rebinding is ineffective.
 */
export function createGuardedLookup({
  allowPrivate,
  resolve = resolveHost,
}: Pick<GuardedRequestOptions, 'allowPrivate' | 'resolve'>): LookupFunction {
  const answer = async (...[hostname, options, callback]: Parameters<LookupFunction>): Promise<void> => {
    let addresses: LookupAddress[];
    try {
      addresses = await resolve(hostname, { useSearchDomains: allowPrivate });
    } catch (error) {
      callback(error as Error, []);
      return;
    }
    const allowed = addresses.filter(({ address }) => allowPrivate || isPublicAddress(address));
    const [first] = allowed;
    if (first === undefined) callback(new PrivateAddressError('The address is not public.'), []);
    else if (options.all === true) callback(null, allowed);
    else callback(null, first.address, first.family);
  };
  return (...parameters) => void answer(...parameters);
}
