import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

// Tests run against the sources: every libs/*/package.json maps the condition `darkroom-source` to src/index.ts. The
// name is not `source`, because other packages use that one for sources that do not run. The client's package.json is
// published unchanged, so it has no such condition: an alias has the same effect.
const shared = {
  ssr: { resolve: { conditions: ['darkroom-source'], externalConditions: ['darkroom-source'] } },
  resolve: {
    conditions: ['darkroom-source'],
    alias: { '@darkroom/client': `${import.meta.dirname}/libs/client/src/index.ts` },
  },
};
const redis = 'libs/testing/src/redis-global-setup.ts';
const environment = {
  globalSetup: [redis],
  // Modules are loaded once for all files of a process, which saves a quarter of the unit tests' time.
  isolate: false,
  // On two cores, Vitest would use one worker.
  maxWorkers: Math.max(2, availableParallelism() - 1),
  testTimeout: 60_000,
  hookTimeout: 60_000,
  // The default of a second is too short for a machine with other load.
  expect: { poll: { timeout: 10_000 } },
};
// One file at a time, beside no other project: such tests are flaky if images wait for a core.
const alone = {
  ...environment,
  maxWorkers: 1,
  // These packages also have a condition `source`, whose TypeScript Node cannot load.
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
      // With their own systems, servers and settings, with faults and load: `npm run test:all`.
      {
        ...shared,
        test: {
          name: 'systems',
          include: ['test/systems/**/*.test.ts'],
          ...alone,
          sequence: { groupOrder: 2 },
        },
      },
      // Requires Docker: `npm run test:compose`.
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
      // Kubernetes manifests, with kustomize and the published schemas, installed if go and pip are available.
      {
        ...shared,
        test: {
          name: 'k8s',
          include: ['test/k8s/**/*.test.ts'],
          ...environment,
          globalSetup: [redis, 'test/k8s/tools-global-setup.ts'],
        },
      },
      // Prints figures, and asserts none: `npm run bench`.
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
