import ipaddr from 'ipaddr.js';

/** The only IPv6 range for public unicast: https://www.iana.org/assignments/ipv6-address-space */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Returns true for an address on the public internet. Returns false for private, loopback, link-local (cloud metadata
 * services), shared, multicast and reserved ranges, and for IPv6 ranges that embed an IPv4 address (NAT64, 6to4,
 * Teredo). An IPv4-mapped IPv6 address is treated as its IPv4 address.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  // ipaddr.js reports unallocated ranges as unicast, including IPv4-compatible addresses (`::7f00:1`).
  const isAllocated = parsed instanceof ipaddr.IPv4 || parsed.match(globalUnicast);
  return isAllocated && parsed.range() === 'unicast';
}

/**
 * Returns true if a URL's `hostname` is a public address, or a name other than localhost. A name may still resolve to a
 * private address: callers must check the resolved addresses with `isPublicAddress`.
 */
export function mayBePublicHost(hostname: string): boolean {
  const host = hostname.replace(/^\[(?<address>.*)\]$/, '$<address>').replace(/\.$/, '');
  if (ipaddr.isValid(host)) return isPublicAddress(host);
  return host !== 'localhost' && !host.endsWith('.localhost');
}
