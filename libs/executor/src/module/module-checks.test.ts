/** What a look whether a module lives leaves behind. What runs there is built: `npm run build` first. */
import { fileURLToPath } from 'node:url';
import { queryObjects } from 'node:v8';
import { expect, it, onTestFinished } from 'vitest';
import { ModuleExecutor } from './module-executor.ts';

/** What is left after garbage is collected. */
const kept = (): number => Number(queryObjects(Promise)) + Number(queryObjects(AbortSignal));

it('keeps nothing of its looks for as long as the module lives', async () => {
  const module = fileURLToPath(new URL('./__fixtures__/writer.mjs', import.meta.url));
  const executor = new ModuleExecutor({ module, model: 'mine', onEvents: () => {}, checkEveryMs: 600_000 });
  onTestFinished(() => executor.shutdown());
  await executor.start();
  const look = async (times: number): Promise<void> => {
    for (let count = 0; count < times; count++) expect(await executor.checkHealth()).toMatchObject({ isHealthy: true });
  };
  await look(10);
  const before = kept();
  await look(300);
  expect(kept() - before).toBeLessThan(100);
});
