/** Tests modules that draw, with valid and invalid output. They run built code: `npm run build` first. */
import { fileURLToPath } from 'node:url';
import { imageInput } from '@darkroom/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { EventLog } from '../conformance/event-log.ts';
import { ModuleExecutor } from './module-executor.ts';

const painter = fileURLToPath(new URL('./__fixtures__/painter.mjs', import.meta.url));

function open() {
  const log = new EventLog();
  const executor = new ModuleExecutor({ module: painter, model: 'mine', onEvents: log.listener });
  onTestFinished(() => executor.shutdown());
  return { log, executor };
}

const image = (prompt: string, changes: object = {}) => ({ ...imageInput, prompt, scheduler: 'own', ...changes });

describe('an image', () => {
  it('emits steps, the requested previews, and pixels or a file', async () => {
    const { log, executor } = open();
    expect(await executor.start()).toMatchObject({
      id: 'mine',
      kind: 'image',
      schedulers: ['own'],
      defaultScheduler: 'own',
    });
    expect(executor.maxSlots).toBe(2);
    executor.submit([{ id: 'a', input: image('apples') }]);
    await log.end('a');
    expect(log.of('progress').map(({ done, total, preview }) => [done, total, preview?.contentType])).toEqual([
      [1, 4, undefined],
      [2, 4, 'image/png'],
      [3, 4, undefined],
      [4, 4, undefined],
    ]);
    expect(log.of('output')[0]!.output).toMatchObject({ facts: { width: 16, height: 16, seed: 7 } });
    expect(log.outputs('a').get(0)).toHaveLength(16 * 16 * 3);
    executor.submit([{ id: 'b', input: image('file') }]);
    await log.end('b');
    expect(log.of('output', 'b')[0]!.output).toMatchObject({ contentType: 'image/png', facts: { width: 16, seed: 7 } });
  });

  it.each<[string, string]>([
    [
      'a clamped array',
      'run returned { data: 3 bytes of Uint8ClampedArray }, expected { data } of 768 bytes, RGB of 16x16, or with a contentType',
    ],
    ['too few pixels', 'run returned { data: 12 bytes }, expected { data } of 768 bytes'],
    [
      'no such file',
      'run returned { data: 70 bytes, contentType: text of 10 characters }, expected data that is a file, and its contentType, one of image/png',
    ],
    ['nothing', 'run returned undefined, expected { data } of 768 bytes'],
    [
      'steps back',
      'run yielded { step: 1, preview: an object }, expected { step, preview } with step a whole number from 3 to 4',
    ],
    [
      'too many steps',
      'run yielded { step: 5, preview: an object }, expected { step, preview } with step a whole number from 1 to 4',
    ],
    ['half a step', 'run yielded { step: 0.5, preview: an object }, expected { step, preview }'],
    [
      'a wrong preview',
      'run yielded a preview { data: 70 bytes }, expected a file, or { data, width, height } with RGB of at most 4x4',
    ],
  ])('loses a request with invalid output: %s', async (prompt, why) => {
    const { log, executor } = open();
    await executor.start();
    executor.submit([
      { id: 'bad', input: image(prompt) },
      { id: 'a', input: image('apples') },
    ]);
    const end = await log.end('bad');
    expect(end).toMatchObject({ type: 'request-lost' });
    expect((end as { message: string }).message).toContain(`${painter} broke its contract: ${why}`);
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  });
});
