/** Tests that health checks of a module leak nothing. It runs built code: `npm run build` first. */
import { fileURLToPath } from 'node:url';
import { queryObjects } from 'node:v8';
import { expect, it, onTestFinished } from 'vitest';
import { ModuleExecutor } from './module-executor.ts';

/** Number of promises and signals that survive garbage collection. */
const countSurvivors = (): number => Number(queryObjects(Promise)) + Number(queryObjects(AbortSignal));

it('leaks no promise or signal per health check', async () => {
  const module = fileURLToPath(new URL('./__fixtures__/writer.mjs', import.meta.url));
  const executor = new ModuleExecutor({ module, model: 'mine', onEvents: () => {}, checkEveryMs: 600_000 });
  onTestFinished(() => executor.shutdown());
  await executor.start();
  const runChecks = async (times: number): Promise<void> => {
    for (let count = 0; count < times; count++) expect(await executor.checkHealth()).toMatchObject({ isHealthy: true });
  };
  await runChecks(10);
  const before = countSurvivors();
  await runChecks(300);
  expect(countSurvivors() - before).toBeLessThan(100);
});
