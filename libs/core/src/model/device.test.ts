import { expect, it } from 'vitest';
import { parseDevices } from './device.ts';

it.each([
  ['cpu', ['cpu']],
  ['cuda', ['cuda']],
  ['cuda:0,cpu', ['cuda:0', 'cpu']],
  [' webgpu , cuda:12 ,cpu', ['webgpu', 'cuda:12', 'cpu']],
])('parses %j', (text, devices) => {
  expect(parseDevices(text)).toEqual(devices);
});

it.each(['', 'gpu', 'CPU', 'cpu,', 'cuda:', 'cuda:-1', 'cuda:01', 'cuda:100', 'webgpu:1', 'cpu,cpu', 'cuda,cuda:0'])(
  'rejects %j',
  (text) => {
    expect(parseDevices(text)).toBeUndefined();
  },
);
