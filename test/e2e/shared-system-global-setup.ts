/** Starts the system and the browser that all files here share; see `shared-system.ts`. */
import type { TestProject } from 'vitest/node';
import { makeCaller } from './caller-model.ts';
import { launchChromiumServer } from './chromium.ts';
import { blockWriter, imageReader, writer } from './shared-system.ts';
import { longWorkerTtl, startSystem, stopSystem, type System } from './system.ts';

declare module 'vitest' {
  interface ProvidedContext {
    sharedSystem: { prefix: string; apis: string[]; logFile: string };
    chromiumUrl: string;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const [system, browser] = await Promise.all([start(project), launchChromiumServer()]);
  const apis = system.parts.filter(({ name }) => name === 'api').map(({ url }) => url);
  project.provide('sharedSystem', { prefix: system.prefix, apis, logFile: system.logFile });
  project.provide('chromiumUrl', browser.wsEndpoint());
  return async () => void (await Promise.all([stopSystem(system), browser.close()]));
}

/** Starts the processes of `npm start`, with a worker for each bundled model and one for a model with tools. */
async function start(project: TestProject): Promise<System> {
  // The text models are small: one thread is as fast as several and leaves cores to the other processes.
  const directories = [writer, blockWriter, imageReader].map((model) => `models/${model}`);
  const writers = [...directories, await makeCaller()].map((directory) => ({
    name: 'worker' as const,
    environment: { MODEL_DIR: directory, NUM_THREADS: '1' },
  }));
  return startSystem({
    parts: ['api', 'api', 'batch-former', 'janitor', 'webhook-sender', 'worker', ...writers],
    redisUrl: project.getProvidedContext().redisUrl,
    environment: {
      ...longWorkerTtl,
      // The tests receive webhooks on loopback addresses.
      WEBHOOK_ALLOW_PRIVATE: 'true',
    },
  });
}
