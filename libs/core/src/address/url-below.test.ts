import { expect, it } from 'vitest';
import { urlBelow } from './url-below.ts';

it.each([
  ['https://example.com/', 'https://example.com/v1/models?a=1'],
  ['https://example.com', 'https://example.com/v1/models?a=1'],
  ['https://example.com/darkroom/', 'https://example.com/darkroom/v1/models?a=1'],
  ['https://example.com/a/b', 'https://example.com/a/b/v1/models?a=1'],
])('appends a path to %s', (root, url) => expect(urlBelow(root, '/v1/models?a=1')).toBe(url));
