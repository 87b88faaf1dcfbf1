import { Writable } from 'node:stream';
import { createLogger } from '@darkroom/service';
import { expect, it } from 'vitest';
import { logLoaded } from './log-loaded.ts';

const components = [
  { part: 'text_encoder', device: 'cpu', refusals: [{ device: 'webgpu', reason: 'No supported adapters' }] },
  { part: 'unet', device: 'webgpu', refusals: [], nodes: { webgpu: 239, cpu: 21 } },
  { part: 'vae_decoder', device: 'cpu', refusals: [], remark: 'large pictures are decoded in one go' },
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

it('says what each part runs on, and aloud what it does not run on', () => {
  const { lines, log } = open();
  const asked = ['webgpu', 'cpu'] as const;
  const card = { id: 'tiny', created: 1, ownedBy: 'tests', kind: 'picture', pipeline: 'Toy' };
  const devices = logLoaded({ components, card }, { log, asked });
  expect(lines).toMatchObject([
    {
      level: 'warn',
      msg: 'does not run on a device asked for',
      part: 'text_encoder',
      device: 'webgpu',
      reason: 'No supported adapters',
    },
    { level: 'info', msg: 'runs on', part: 'text_encoder', device: 'cpu', asked },
    { level: 'info', msg: 'runs on', part: 'unet', device: 'webgpu', nodes: { webgpu: 239, cpu: 21 } },
    { level: 'info', msg: 'runs on', part: 'vae_decoder', device: 'cpu' },
    { level: 'warn', msg: 'cannot do all that is asked for', part: 'vae_decoder', remark: components[2].remark },
  ]);
  expect(devices).toEqual(['cpu', 'webgpu']);
});

it('says aloud that a model does not keep the bytes of its rows, and why', () => {
  const { lines, log } = open();
  const cards = [{ is: true }, { is: false, reason: 'the pieces' }, undefined].map((deterministic, at) => {
    return { id: `model-${at}`, created: 1, ownedBy: 'tests', kind: 'text', pipeline: 'Toy', deterministic };
  });
  for (const card of cards) logLoaded({ components: [], card }, { log, asked: ['cpu'] });
  expect(lines).toMatchObject([{ level: 'warn', model: 'model-1', reason: 'the pieces' }]);
  expect(lines).toHaveLength(1);
});
