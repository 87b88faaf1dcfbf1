/** Installs the tools of all tests here once. Without them the tests are skipped with a warning. */
import type { TestProject } from 'vitest/node';
import { installKubernetesTools, type KubernetesTools } from './kubernetes-tools.ts';

declare module 'vitest' {
  interface ProvidedContext {
    kubernetesTools: KubernetesTools;
  }
}

export async function setup(project: TestProject): Promise<void> {
  const tools = await installKubernetesTools();
  if (tools.status !== 'ready')
    console.warn(`\nTHE KUBERNETES MANIFESTS ARE NOT CHECKED, tools are missing: ${tools.reason}\n`);
  project.provide('kubernetesTools', tools);
}
