import { describe, expect, it } from 'vitest';
import { isPublicAddress, mayBePublicHost } from './public-address.ts';

describe('isPublicAddress', () => {
  it.each(['8.8.8.8', '1.1.1.1', '2606:4700::1111', '2001:4860:4860::8888', '::ffff:8.8.8.8'])(
    '%s is public',
    (address) => expect(isPublicAddress(address)).toBe(true),
  );

  it.each([
    '0.0.0.0',
    '0.1.2.3',
    '127.0.0.1',
    '127.255.255.254',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.1.1',
    '100.64.0.1',
    '169.254.169.254',
    '192.0.0.1',
    '192.0.2.1',
    '198.18.0.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '192.88.99.1',
    '::',
    '::1',
    '::127.0.0.1',
    '::7f00:1',
    '4000::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:0:127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b:1::7f00:1',
    '2002:7f00:1::',
    '2001::1',
    'fc00::1',
    'fd00:ec2::254',
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    'ff02::1',
    '2001:db8::1',
    '100::1',
    '',
    'example.com',
    '999.1.1.1',
  ])('%s is not', (address) => expect(isPublicAddress(address)).toBe(false));
});

describe('mayBePublicHost', () => {
  it.each(['http://example.com', 'https://8.8.8.8', 'http://[2606:4700::1111]', 'http://localhost.example.com'])(
    '%s may be',
    (url) => expect(mayBePublicHost(new URL(url).hostname)).toBe(true),
  );

  it.each([
    'http://[::127.0.0.1]',
    'http://localhost',
    'http://LOCALHOST.',
    'http://a.localhost',
    'http://127.0.0.1',
    'http://127.1',
    'http://2130706433',
    'http://0x7f.0.0.1',
    'http://0177.0.0.1',
    'http://[::1]',
    'http://[::ffff:127.0.0.1]',
    'http://127.0.0.1.',
    'http://169.254.169.254',
    'http://[fe80::1]',
    'http://0',
  ])('%s may not', (url) => expect(mayBePublicHost(new URL(url).hostname)).toBe(false));
});
