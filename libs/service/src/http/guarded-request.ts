/** One request to a server that nobody here trusts. */
import { lookup as systemLookup, type LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { isPublicAddress, mayBePublicHost } from '@darkroom/core';

export interface GuardedRequestOptions {
  url: string;
  method: 'GET' | 'POST';
  headers: Readonly<Record<string, string>>;
  body?: string;
  /** Ends it, and the reading of its answer. */
  signal: AbortSignal;
  /** Whether it may go to private, loopback and other addresses that are not public. */
  allowPrivate: boolean;
  /** For tests. */
  resolve?: Resolve | undefined;
}

/** `refused`: the address is not public, and nothing was sent. `failed`: no answer came; the reason shows nothing of ours. */
export type GuardedResult<Read> =
  | { status: 'answered'; code: number; read: Read }
  | { status: 'refused' }
  | { status: 'failed'; reason: string };

/**
 * Node's own client, because it follows no redirects and takes a `lookup`: the address that is checked is the one that
 * is connected to. Each call has a connection of its own, which is closed when `read` is done with the answer.
 *
 * @param read what it throws is told as a failure, like a connection that breaks.
 */
export async function guardedRequest<Read>(
  { url, method, headers, body, signal, allowPrivate, resolve }: GuardedRequestOptions,
  read: (response: IncomingMessage) => Promise<Read>,
): Promise<GuardedResult<Read>> {
  const target = new URL(url);
  // An address in place of a name is never looked up.
  if (!allowPrivate && !mayBePublicHost(target.hostname)) return { status: 'refused' };
  const guard = allowPrivate ? {} : { lookup: createGuardedLookup(resolve) };
  const send = target.protocol === 'https:' ? httpsRequest : httpRequest;
  const request = send(target, { ...guard, method, agent: false, headers, signal });
  // What comes after the answer, such as a reset, is nobody's concern, and must not end the process.
  request.on('error', () => {});
  // Without a listener Node closes the connection after a 101 and says nothing: neither an answer nor an error.
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
  EAI_AGAIN: 'host name not found',
  EHOSTUNREACH: 'host not reachable',
  ENETUNREACH: 'host not reachable',
  EPROTO: 'TLS failed',
};

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  // Of several addresses of a name, each has its own error; they are alike.
  const first = error instanceof AggregateError ? (error.errors[0] as unknown) : undefined;
  if (first !== undefined && reasons[code] === undefined) return reasonOf(first);
  if (/CERT|SSL|TLS|SIGNATURE/.test(code)) return 'TLS failed';
  if (code.startsWith('HPE_')) return 'the answer is not HTTP';
  return reasons[code] ?? 'connection failed';
}

/** Looks up all addresses of a name; `dns.lookup`, but for tests. */
export type Resolve = (
  hostname: string,
  options: { all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** A name that leads to no address that we connect to. */
class PrivateAddressError extends Error {
  override name = 'PrivateAddressError';
}

/**
 * The `lookup` of a connection: it yields public addresses only. The connection is made to what it yields, so a name
 * that leads elsewhere a moment later (DNS rebinding) gains nothing.
 */
export function createGuardedLookup(resolve: Resolve = systemLookup): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const allowed = (addresses ?? []).filter(({ address }) => isPublicAddress(address));
      const [first] = allowed;
      if (error !== null) callback(error, []);
      else if (first === undefined) callback(new PrivateAddressError('The address is not public.'), []);
      else if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}
