/** Tests modules that take images in messages. They run built code: `npm run build` first. */
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { EventLog } from '../conformance/event-log.ts';
import { ModuleExecutor } from './module-executor.ts';

const fixture = (name: string): string => fileURLToPath(new URL(`./__fixtures__/${name}.mjs`, import.meta.url));

function open(module: string) {
  const log = new EventLog();
  const executor = new ModuleExecutor({ module, model: 'mine', onEvents: log.listener });
  onTestFinished(() => executor.shutdown());
  return { log, executor };
}

it('a module with takesImages gets the images of messages as data URLs, in their place', async () => {
  const { log, executor } = open(fixture('looker'));
  expect(await executor.start()).toMatchObject({ kind: 'text', takes: ['image'] });
  const parts = ['image-0', 'image-1'].map((url) => ({ type: 'image_url', image_url: { url } }));
  const messages = [{ role: 'user', content: [parts[0], { type: 'text', text: 'And?' }, parts[1]] }];
  const attachments = new Map([
    ['image-1', Uint8Array.of(4, 5, 6)],
    ['image-0', Uint8Array.of(1, 2, 3)],
  ]);
  executor.submit([{ id: 'a', input: { params: { messages }, n: 1, seed: 1, maxTokens: 5 }, attachments }]);
  expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  expect(new TextDecoder().decode(log.outputs('a').get(0))).toBe(
    'data:image/png;base64,AQIDdata:image/png;base64,BAUG',
  );
});

it('a module without takesImages has a card that takes no images', async () => {
  expect(await open(fixture('writer')).executor.start()).toMatchObject({ takes: [] });
});
