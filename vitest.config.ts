import { defineConfig } from 'vitest/config';

// Tests run against the sources: `darkroom-source` is the condition that every libs/*/package.json maps to
// src/index.ts. Packages of others have one that is just called source, and ship no sources that would run.
const shared = {
  ssr: { resolve: { conditions: ['darkroom-source'], externalConditions: ['darkroom-source'] } },
  resolve: { conditions: ['darkroom-source'] },
};
const environment = {
  globalSetup: ['libs/testing/src/redis-global-setup.ts'],
  testTimeout: 60_000,
  hookTimeout: 60_000,
  // A second, which it is without this, is not long for a machine with other things to do.
  expect: { poll: { timeout: 10_000 } },
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
      {
        ...shared,
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          fileParallelism: false,
          ...environment,
          // The other projects run beside it, and pictures then take several times as long.
          testTimeout: 180_000,
          hookTimeout: 120_000,
          expect: { poll: { timeout: 30_000 } },
          // It imports a package that has a condition `source` too, whose TypeScript Node does not read.
          server: { deps: { inline: [/node_modules\/(?:ai|@ai-sdk)\//] } },
        },
      },
      // Needs Docker: `npm run test:compose`.
      {
        ...shared,
        test: {
          name: 'compose',
          include: ['test/compose/**/*.test.ts'],
          fileParallelism: false,
          ...environment,
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
          globalSetup: [...environment.globalSetup, 'test/k8s/tools-global-setup.ts'],
        },
      },
      // Prints numbers and asserts none: `npm run bench`.
      { ...shared, test: { name: 'bench', include: ['bench/**/*.bench.ts'], fileParallelism: false, ...environment } },
    ],
  },
});
