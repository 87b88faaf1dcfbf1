import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { readGpuMemory, readProcessMemory } from './read-memory.ts';

/** Creates a fake nvidia-smi that prints this answer. */
function driver(answer: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-smi-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'nvidia-smi');
  writeFileSync(file, `#!/bin/sh\n[ "$1" = --query-compute-apps=pid,used_memory ] && printf '${answer}'\n`);
  chmodSync(file, 0o755);
  return file;
}

it('reads the memory of a process', async () => {
  const bytes = await readProcessMemory(process.pid);
  expect(bytes).toBeGreaterThan(10e6);
  expect(bytes).toBeLessThan(1.5 * process.memoryUsage().rss);
  expect(await readProcessMemory(2 ** 22)).toBeUndefined();
});

it.each<[string, number | undefined]>([
  ['12, 400\\n34, 512\\n34, 100\\n', 612 * 2 ** 20],
  ['12, 400\\n', undefined],
  ['34, [N/A]\\n', undefined],
  ['No devices were found\\n', undefined],
])('reads the GPU memory of a process from nvidia-smi output %j', async (answer, bytes) => {
  expect(await readGpuMemory(34, driver(answer))).toBe(bytes);
});

it('returns undefined without nvidia-smi', async () => {
  expect(await readGpuMemory(34, '/nowhere/nvidia-smi')).toBeUndefined();
});
