import { OwnerTurns } from '@darkroom/core';

/**
 * Limits the connections of this process per owner and per host, so that slow receivers cannot take all of them.
 * Acquires a connection slot and returns a function that releases it; undefined when the owner or the host has reached
 * its limit.
 */
export function createConnectionSlots({ perOwner, perHost }: { perOwner: number; perHost: number }) {
  const owners = new OwnerTurns({ maxHeldBy: () => perOwner });
  const hosts = new OwnerTurns({ maxHeldBy: () => perHost });
  return ({ owner, url }: { owner: string; url: string }): (() => void) | undefined => {
    // By host name without the port: a receiver may listen on any number of ports.
    const releaseHost = hosts.take(new URL(url).hostname.replace(/\.$/, ''));
    const releaseOwner = releaseHost && owners.take(owner);
    if (releaseOwner === undefined) releaseHost?.();
    return (
      releaseOwner &&
      (() => {
        releaseHost?.();
        releaseOwner();
      })
    );
  };
}
