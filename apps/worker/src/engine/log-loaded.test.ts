import { Writable } from 'node:stream';
import { createLogger } from '@darkroom/service';
import { expect, it } from 'vitest';
import { logLoaded } from './log-loaded.ts';

const components = [
  { part: 'text_encoder', device: 'cpu', refusals: [{ device: 'webgpu', reason: 'No supported adapters' }] },
  { part: 'unet', device: 'webgpu', refusals: [], nodes: { webgpu: 239, cpu: 21 } },
  { part: 'vae_decoder', device: 'cpu', refusals: [], remark: 'large images are decoded in one go' },
] as const;

function open() {
  const lines: Record<string, unknown>[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(JSON.parse(chunk.toString()) as Record<string, unknown>);
      done();
    },
  });
  return { lines, log: createLogger({ app: 'test', stream }) };
}

it('logs the device of each part, and warns about refused devices', () => {
  const { lines, log } = open();
  const requested = ['webgpu', 'cpu'] as const;
  const card = { id: 'tiny', created: 1, ownedBy: 'tests', kind: 'image', pipeline: 'Toy' };
  const devices = logLoaded({ components, card }, { log, requested });
  expect(lines).toMatchObject([
    {
      level: 'warn',
      msg: 'device refused',
      part: 'text_encoder',
      device: 'webgpu',
      reason: 'No supported adapters',
    },
    { level: 'info', msg: 'part loaded', part: 'text_encoder', device: 'cpu', requested },
    { level: 'info', msg: 'part loaded', part: 'unet', device: 'webgpu', nodes: { webgpu: 239, cpu: 21 } },
    { level: 'info', msg: 'part loaded', part: 'vae_decoder', device: 'cpu' },
    { level: 'warn', msg: 'part loaded with limits', part: 'vae_decoder', remark: components[2].remark },
  ]);
  expect(devices).toEqual(['cpu', 'webgpu']);
});

it('warns that the outputs of a model depend on the batch, with the reason', () => {
  const { lines, log } = open();
  const all = [{ is: true }, { is: false, reason: 'the pieces' }, undefined] as const;
  const cards = all.map((deterministic, at) => {
    return { id: `model-${at}`, created: 1, ownedBy: 'tests', kind: 'text', pipeline: 'Toy', deterministic };
  });
  for (const card of cards) logLoaded({ components: [], card }, { log, requested: ['cpu'] });
  expect(lines).toMatchObject([{ level: 'warn', model: 'model-1', reason: 'the pieces' }]);
  expect(lines).toHaveLength(1);
});
