/** The system and the browser of all files here, started once; see `shared-system.ts`. */
import type { TestProject } from 'vitest/node';
import { makeCaller } from './caller-model.ts';
import { launchChromiumServer } from './chromium.ts';
import { blockWriter, writer } from './shared-system.ts';
import { patience, startSystem, stopSystem, type System } from './system.ts';

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

/** As `npm start` has it: a worker for each of the models that are in the box; and one for a model with tools. */
async function start(project: TestProject): Promise<System> {
  // They are small: a thread each is as fast as several, and leaves the cores to the others.
  const writers = [`models/${writer}`, `models/${blockWriter}`, await makeCaller()].map((directory) => ({
    name: 'worker' as const,
    environment: { MODEL_DIR: directory, NUM_THREADS: '1' },
  }));
  return startSystem({
    parts: ['api', 'api', 'batch-former', 'janitor', 'webhook-sender', 'worker', ...writers],
    environment: {
      ...patience,
      REDIS_URL: project.getProvidedContext().redisUrl,
      // Small chunks, so that pictures come in several.
      CHUNK_BYTES: '3000',
      // The receivers of webhooks are the tests.
      WEBHOOK_ALLOW_PRIVATE: 'true',
    },
  });
}
