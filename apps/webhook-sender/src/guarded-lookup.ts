import { lookup as systemLookup, type LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isPublicAddress } from '@darkroom/core';

/** Looks up all addresses of a name; `dns.lookup`, but for tests. */
export type Resolve = (
  hostname: string,
  options: { all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** A name that leads to no address that we connect to. */
export class PrivateAddressError extends Error {
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
