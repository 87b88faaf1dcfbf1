import { expect, it } from 'vitest';
import { parseBytesUrl } from './bytes-address.ts';

it('reads directories', () => {
  expect(parseBytesUrl('file:///mnt/our%20images')).toEqual({ kind: 'directory', path: '/mnt/our images' });
});

it('reads buckets', () => {
  expect(parseBytesUrl('s3://images')).toEqual({ kind: 'bucket', bucket: 'images', prefix: '' });
  expect(parseBytesUrl('s3://images/of/darkroom//')).toMatchObject({ prefix: 'of/darkroom/' });
  expect(parseBytesUrl('s3://images?endpoint=http://127.0.0.1:7070&region=eu-1&links=https://s3.example')).toEqual({
    kind: 'bucket',
    bucket: 'images',
    prefix: '',
    endpoint: 'http://127.0.0.1:7070',
    region: 'eu-1',
    links: 'https://s3.example',
  });
});

it.each([
  '',
  '/mnt/images',
  'file://host/images',
  'file:///',
  'file:///mnt/100%',
  'file:///mnt/a%2Fb',
  'file:///mnt/images?mode=1',
  's3://',
  's3://UPPER',
  's3://images?endpoint=127.0.0.1',
  's3://images?region=',
  's3://images?endpont=http://127.0.0.1',
  'http://127.0.0.1/images',
])('refuses %j', (text) => {
  expect(parseBytesUrl(text)).toBeUndefined();
});
