/** Places for the connections of this process, so that receivers that answer slowly cannot take all of them. */
export interface HostSlots {
  /** A place for one connection to a host, to be given back by calling it; undefined when the host has its share. */
  take(host: string): (() => void) | undefined;
}

export function createHostSlots(mostPerHost: number): HostSlots {
  const taken = new Map<string, number>();
  return {
    take(host) {
      const count = taken.get(host) ?? 0;
      if (count >= mostPerHost) return undefined;
      taken.set(host, count + 1);
      return () => {
        const left = (taken.get(host) ?? 1) - 1;
        if (left === 0) taken.delete(host);
        else taken.set(host, left);
      };
    },
  };
}
