import { createPlaces } from '@darkroom/core';

/**
 * Places for the connections of this process, so that receivers that answer slowly cannot take all of them: takes one, to be given
 * back by calling the result; undefined when the owner or the host has its share.
 */
export function createDeliveryPlaces({ perOwner, perHost }: { perOwner: number; perHost: number }) {
  const owners = createPlaces(perOwner);
  const hosts = createPlaces(perHost);
  return ({ owner, url }: { owner: string; url: string }): (() => void) | undefined => {
    // The name alone: a receiver may have any number of ports.
    const leaveHost = hosts.take(new URL(url).hostname.replace(/\.$/, ''));
    const leaveOwner = leaveHost && owners.take(owner);
    if (leaveOwner === undefined) leaveHost?.();
    return (
      leaveOwner &&
      (() => {
        leaveHost?.();
        leaveOwner();
      })
    );
  };
}
