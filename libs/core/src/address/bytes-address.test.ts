import { expect, it } from 'vitest';
import { parseBytesUrl } from './bytes-address.ts';

it('reads directories', () => {
  expect(parseBytesUrl('file:///mnt/our%20pictures')).toEqual({ kind: 'directory', path: '/mnt/our pictures' });
});

it('reads buckets', () => {
  expect(parseBytesUrl('s3://pictures')).toEqual({ kind: 'bucket', bucket: 'pictures', prefix: '' });
  expect(parseBytesUrl('s3://pictures/of/darkroom//')).toMatchObject({ prefix: 'of/darkroom/' });
  expect(parseBytesUrl('s3://pictures?endpoint=http://127.0.0.1:7070&region=eu-1&links=https://s3.example')).toEqual({
    kind: 'bucket',
    bucket: 'pictures',
    prefix: '',
    endpoint: 'http://127.0.0.1:7070',
    region: 'eu-1',
    links: 'https://s3.example',
  });
});

it.each([
  '',
  '/mnt/pictures',
  'file://host/pictures',
  'file:///',
  'file:///mnt/100%',
  'file:///mnt/a%2Fb',
  'file:///mnt/pictures?mode=1',
  's3://',
  's3://UPPER',
  's3://pictures?endpoint=127.0.0.1',
  's3://pictures?region=',
  's3://pictures?endpont=http://127.0.0.1',
  'http://127.0.0.1/pictures',
])('refuses %j', (text) => {
  expect(parseBytesUrl(text)).toBeUndefined();
});
