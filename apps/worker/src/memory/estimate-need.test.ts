import { expect, it } from 'vitest';
import { estimateNeed } from './estimate-need.ts';

const model = { weightBytes: 900e6, cacheBytes: 0 };

it.each([
  [
    'text',
    { ...model, cacheBytes: 50e6, device: 'cpu' },
    { minBytes: 945e6, estimatedBytes: 1050e6, cacheBytes: 50e6 },
  ],
  ['image', { ...model, device: 'cpu' }, { minBytes: 945e6, estimatedBytes: 1960e6, cacheBytes: 0 }],
  ['image', { ...model, device: 'cuda:1' }, { minBytes: 900e6, estimatedBytes: 2200e6, cacheBytes: 0 }],
] as const)('estimates the memory of a %s model, %j', (kind, facts, need) => {
  expect(estimateNeed({ kind }, facts)).toEqual(need);
});
