import { expect, it } from 'vitest';
import { parseDevices } from './device.ts';

it.each([
  ['cpu', ['cpu']],
  ['cuda', ['cuda']],
  ['cuda:0,cpu', ['cuda:0', 'cpu']],
  [' webgpu , cuda:12 ,cpu', ['webgpu', 'cuda:12', 'cpu']],
])('reads %j', (text, devices) => {
  expect(parseDevices(text)).toEqual(devices);
});

it.each(['', 'gpu', 'CPU', 'cpu,', 'cuda:', 'cuda:-1', 'cuda:01', 'cuda:100', 'webgpu:1', 'cpu,cpu', 'cuda,cuda:0'])(
  'takes %j for none',
  (text) => {
    expect(parseDevices(text)).toBeUndefined();
  },
);
