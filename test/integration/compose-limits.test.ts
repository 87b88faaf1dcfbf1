/** Memory limits of docker-compose.yml and the manifests, read from the files: nothing is started. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parse } from 'yaml';

interface Service {
  mem_limit?: string;
  command?: string;
  environment?: Record<string, string>;
}

const root = new URL('../../', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, root), 'utf8');
const { services } = parse(read('docker-compose.yml'), { merge: true }) as { services: Record<string, Service> };

const units: Record<string, number> = { b: 1, m: 2 ** 20, mb: 2 ** 20, g: 2 ** 30, gb: 2 ** 30 };

/** Parses `512m` or `${NAME:-1gb}` into bytes. */
function bytesOf(text: string): number {
  const { count = '', unit = '' } = /(?<count>\d+)(?<unit>[a-z]+)\}?$/i.exec(text)?.groups ?? {};
  return Number(count) * (units[unit.toLowerCase()] ?? Number.NaN);
}

it('docker-compose.yml gives every container a memory limit', () => {
  const limits = Object.entries(services).map(([name, { mem_limit: limit }]) => [name, bytesOf(limit ?? '')]);
  expect(limits.length).toBeGreaterThan(8);
  expect(limits.filter(([, limit]) => !(Number(limit) >= 2 ** 28))).toEqual([]);
});

it('Redis has twice its maxmemory, and OWNER_MAX_BYTES over all models of compose stays below maxmemory', () => {
  const { command = '', mem_limit: limit = '' } = services['redis']!;
  const maxMemory = bytesOf(/--maxmemory (?<value>\S+)/.exec(command)!.groups!['value']!);
  expect(bytesOf(limit)).toBeGreaterThanOrEqual(2 * maxMemory);
  const owner = Number(
    /^OWNER_MAX_BYTES=\$\{OWNER_MAX_BYTES:-(?<bytes>\d+)\}$/m.exec(read('deploy/docker/defaults.env'))?.[1],
  );
  const models = ['worker', 'worker-emoji-writer', 'worker-emoji-writer-diffusion'].filter((name) => name in services);
  expect(models.length * owner).toBeLessThan(0.9 * maxMemory);
  const manifest = /name: OWNER_MAX_BYTES\n\s+value: '(?<bytes>\d+)'/.exec(read('k8s/base/api.yaml'))?.[1];
  expect(manifest).toBe(String(owner));
  expect(read('k8s/components/redis/redis.yaml')).toMatch(/--maxmemory\n\s+- 1gb/);
});
