import { createPlaces } from '@darkroom/core';

/** Places for the connections of this process, so that receivers that answer slowly cannot take all of them. */
export interface DeliveryPlaces {
  /** A place for one connection, to be given back by calling it; undefined when the owner or the host has its share. */
  take(delivery: { owner: string; url: string }): (() => void) | undefined;
}

export function createDeliveryPlaces({ perOwner, perHost }: { perOwner: number; perHost: number }): DeliveryPlaces {
  const owners = createPlaces(perOwner);
  const hosts = createPlaces(perHost);
  return {
    take({ owner, url }) {
      // The name alone: a receiver may have any number of ports.
      const leaveHost = hosts.take(new URL(url).hostname.replace(/\.$/, ''));
      if (leaveHost === undefined) return undefined;
      const leaveOwner = owners.take(owner);
      if (leaveOwner === undefined) {
        leaveHost();
        return undefined;
      }
      return () => {
        leaveHost();
        leaveOwner();
      };
    },
  };
}
