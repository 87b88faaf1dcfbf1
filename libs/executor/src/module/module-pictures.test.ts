/** Modules that draw, as they should and not. What runs there is built: `npm run build` first. */
import { fileURLToPath } from 'node:url';
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

const picture = (prompt: string, changes: object = {}) => ({
  prompt,
  negativePrompt: '',
  width: 16,
  height: 16,
  n: 1,
  numInferenceSteps: 4,
  guidanceScale: 1,
  guidanceRescale: 0,
  seed: 7,
  scheduler: 'own',
  outputFormat: 'png',
  outputCompression: 100,
  previewEvery: 2,
  ...changes,
});

describe('a picture', () => {
  it('has steps, the previews that were asked for, and pixels', async () => {
    const { log, executor } = open();
    expect(await executor.start()).toMatchObject({
      id: 'mine',
      kind: 'picture',
      schedulers: ['own'],
      defaultScheduler: 'own',
    });
    expect(executor.maxSlots).toBe(2);
    executor.submit([{ id: 'a', input: picture('apples') }]);
    await log.end('a');
    expect(log.of('progress').map(({ done, total, preview }) => [done, total, preview?.contentType])).toEqual([
      [1, 4, undefined],
      [2, 4, 'image/png'],
      [3, 4, undefined],
      [4, 4, undefined],
    ]);
    expect(log.of('output')[0]!.output).toMatchObject({ facts: { width: 16, height: 16, seed: 7 } });
    expect(log.outputs('a').get(0)).toHaveLength(16 * 16 * 3);
    executor.submit([{ id: 'b', input: picture('file') }]);
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
      'run gave out { step: 1, preview: an object }, expected { step, preview } with step a whole number from 3 to 4',
    ],
    [
      'too many steps',
      'run gave out { step: 5, preview: an object }, expected { step, preview } with step a whole number from 1 to 4',
    ],
    ['half a step', 'run gave out { step: 0.5, preview: an object }, expected { step, preview }'],
    ['a wrong preview', 'run gave out a preview { data: 70 bytes }, expected data that is a file, and its contentType'],
  ])('with %s goes back', async (prompt, why) => {
    const { log, executor } = open();
    await executor.start();
    executor.submit([
      { id: 'bad', input: picture(prompt) },
      { id: 'a', input: picture('apples') },
    ]);
    const end = await log.end('bad');
    expect(end).toMatchObject({ type: 'request-lost' });
    expect((end as { message: string }).message).toContain(`${painter} broke its contract: ${why}`);
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  });
});
