import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

// Tests run against the sources: `darkroom-source` is the condition that every libs/*/package.json maps to
// src/index.ts. Packages of others have one that is just called source, and ship no sources that would run.
const shared = {
  ssr: { resolve: { conditions: ['darkroom-source'], externalConditions: ['darkroom-source'] } },
  resolve: { conditions: ['darkroom-source'] },
};
const redis = 'libs/testing/src/redis-global-setup.ts';
const environment = {
  globalSetup: [redis],
  // A file's own modules are loaded once for all files of a process: that is a quarter of the time of the unit tests.
  isolate: false,
  // On two cores Vitest would take one.
  maxWorkers: Math.max(2, availableParallelism() - 1),
  testTimeout: 60_000,
  hookTimeout: 60_000,
  // A second, which it is without this, is not long for a machine with other things to do.
  expect: { poll: { timeout: 10_000 } },
};
// One file after the other, beside no other project: a picture that waits for a core is what makes such tests shake.
const alone = {
  ...environment,
  maxWorkers: 1,
  // They import packages that have a condition `source` too, whose TypeScript Node does not read.
  server: { deps: { inline: [/node_modules\/(?:ai|@ai-sdk)\//] } },
};

export default defineConfig({
  ...shared,
  test: {
    projects: [
      {
        ...shared,
        test: { name: 'unit', include: ['libs/*/src/**/*.test.ts', 'apps/*/src/**/*.test.ts'], ...environment },
      },
      { ...shared, test: { name: 'integration', include: ['test/integration/**/*.test.ts'], ...environment } },
      // One system and one browser for all files.
      {
        ...shared,
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          ...alone,
          sequence: { groupOrder: 1 },
          globalSetup: [redis, 'test/e2e/shared-system-global-setup.ts'],
        },
      },
      // Systems, servers and settings of their own, faults and load: `npm run test:all`. They mostly wait, so two at once.
      {
        ...shared,
        test: {
          name: 'systems',
          include: ['test/systems/**/*.test.ts'],
          ...alone,
          sequence: { groupOrder: 2 },
        },
      },
      // Needs Docker: `npm run test:compose`.
      {
        ...shared,
        test: {
          name: 'compose',
          include: ['test/compose/**/*.test.ts'],
          ...alone,
          sequence: { groupOrder: 3 },
          testTimeout: 300_000,
        },
      },
      // The manifests: with kustomize and the published schemas, which are installed if go and pip are there.
      {
        ...shared,
        test: {
          name: 'k8s',
          include: ['test/k8s/**/*.test.ts'],
          ...environment,
          globalSetup: [redis, 'test/k8s/tools-global-setup.ts'],
        },
      },
      // Prints numbers and asserts none: `npm run bench`.
      {
        ...shared,
        test: {
          name: 'bench',
          include: ['bench/**/*.bench.ts'],
          ...alone,
          sequence: { groupOrder: 4 },
          globalSetup: ['bench/redis-global-setup.ts'],
          testTimeout: 600_000,
        },
      },
    ],
  },
});
