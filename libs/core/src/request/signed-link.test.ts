import { expect, it } from 'vitest';
import { checkLink, type LinkParts, signLink } from './signed-link.ts';

const secret = 'only we know this one';
const path = '/v1/predict/tiny-01kaj3v0q8f3zt6m0c9d7p2xwe/images/0';
const untilMs = 1_800_000_000_000;

function partsOf(link: string): LinkParts & { path: string } {
  const { pathname, searchParams } = new URL(link, 'http://localhost');
  const valueOf = (name: string): string | undefined => searchParams.get(name) ?? undefined;
  return { path: pathname, expires: valueOf('expires'), signature: valueOf('signature') };
}

function check(parts: LinkParts, { at = path, nowMs = untilMs - 1, by = secret } = {}): string {
  return checkLink(at, parts, { secret: by, nowMs });
}

it('is valid for its path until it expires', () => {
  const link = partsOf(signLink(path, { secret, untilMs }));
  expect(link).toMatchObject({ path, expires: '1800000000' });
  expect(check(link)).toBe('valid');
  expect(check(link, { nowMs: untilMs })).toBe('expired');
  expect(signLink(path, { secret, untilMs: untilMs - 999 })).toBe(signLink(path, { secret, untilMs }));
});

it('is signed with HMAC-SHA256 over path and expiry time, as documented', () => {
  // printf '/a\n1' | openssl dgst -sha256 -hmac key -binary | basenc --base64url
  expect(signLink('/a', { secret: 'key', untilMs: 1000 })).toBe(
    '/a?expires=1&signature=Mp-0VVmOtgWkq-pz-AZzR5BTIZvfbck070ItR2q7KaQ',
  );
});

it('is wrong if any part was changed', () => {
  const { expires, signature } = partsOf(signLink(path, { secret, untilMs }));
  const wrong: [LinkParts, Parameters<typeof check>[1]?][] = [
    [{ expires: '1900000000', signature }],
    [{ expires: ' 1800000000', signature }],
    [{ expires: undefined, signature }],
    [{ expires, signature: undefined }],
    [{ expires, signature: '' }],
    [{ expires, signature: signature!.slice(0, -2) }],
    [{ expires, signature: `${signature}AAAA` }],
    [{ expires, signature: `A${signature!.slice(1)}`.replace(/^AA/, 'BA') }],
    [{ expires, signature }, { at: path.replace(/0$/, '1') }],
    [{ expires, signature }, { by: 'another secret' }],
    // A wrong signature is never reported as expired.
    [{ expires: '1', signature }, { nowMs: untilMs + 1 }],
  ];
  for (const [parts, how] of wrong) expect([parts, check(parts, how)]).toEqual([parts, 'wrong']);
});
