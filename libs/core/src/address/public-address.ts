import ipaddr from 'ipaddr.js';

/** https://www.iana.org/assignments/ipv6-address-space */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Whether an IP address belongs to the public internet. Everything special is not: private, loopback, link-local (with
 * the metadata services of clouds), shared, multicast and reserved ranges, and IPv6 ranges that lead to any IPv4 address
 * (NAT64, 6to4, Teredo). IPv4 inside of IPv6 counts as the IPv4 address it is.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  // What is not allocated counts as unicast there, IPv4-compatible addresses (`::7f00:1`) with it.
  const isAllocated = parsed instanceof ipaddr.IPv4 || parsed.match(globalUnicast);
  return isAllocated && parsed.range() === 'unicast';
}

/**
 * Whether a URL's `hostname` may be a public one. A name other than localhost may: what it leads to is known only once
 * it is resolved, and has to be checked with `isPublicAddress` then.
 */
export function mayBePublicHost(hostname: string): boolean {
  const host = hostname.replace(/^\[(?<address>.*)\]$/, '$<address>').replace(/\.$/, '');
  if (ipaddr.isValid(host)) return isPublicAddress(host);
  return host !== 'localhost' && !host.endsWith('.localhost');
}
