/**
 * Attacks that once crashed an API or starved other clients, each against the built system. The API has a memory limit
 * of 512 MiB, and another client (the neighbor) must still be served.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { longWorkerTtl, startSystem, stopSystem, type System } from '../e2e/system.ts';
import type { AttackGroup, Target } from './hostile/attack.ts';
import { bodies, keylessBodies } from './hostile/bodies.ts';
import { images } from './hostile/images.ts';
import { largeChats } from './hostile/chats.ts';
import { grammars } from './hostile/grammars.ts';
import { limitMemory, type MemoryLimit } from './hostile/limit-memory.ts';
import { nameServers } from './hostile/name-servers.ts';
import { operators } from './hostile/operators.ts';
import { readCpuWait, slownessSince } from './hostile/cpu-wait.ts';
import { watchBeside } from './hostile/neighbor.ts';

const memoryMaxBytes = 512 * 2 ** 20;
const healthMaxMs = 250;
const groups: readonly AttackGroup[] = [bodies, keylessBodies, largeChats, images, grammars, nameServers, operators];
const isRoot = process.getuid?.() === 0;

const keys = { attacker: 'key-of-the-attacker', neighbor: 'key-of-the-neighbor' };
const models = 'models/emoji-sd,models/emoji-writer';

describe.each(groups)('attacks with $topic', ({ environment = {}, hasKeys = true, openRuntime, attacks }) => {
  let system: System;
  let target: Target;
  let controlUrl: string;
  let limit: MemoryLimit | undefined;
  let runtime: { execPath: string; close(): Promise<void> } | undefined;
  let apiPid: number;

  beforeAll(async () => {
    const access: Record<string, string> = hasKeys
      ? { API_KEYS: `attacker:${keys.attacker},neighbor:${keys.neighbor}` }
      : {};
    system = await startSystem({
      parts: ['api', 'batch-former', 'janitor', { name: 'worker', environment: { MODEL_DIRS: models } }],
      environment: { ...longWorkerTtl, ...access, ...environment },
    });
    controlUrl = system.url;
    limit = await limitMemory(memoryMaxBytes);
    runtime = isRoot ? await openRuntime?.() : undefined;
    const api = system.launch('api', {}, runtime);
    apiPid = api.process.pid!;
    await limit?.add(apiPid);
    await api.ready;
    const otherHeaders = headersOf(keys.neighbor);
    target = { system, url: api.url, headers: headersOf(keys.attacker), otherHeaders };
  }, 120_000);
  afterAll(async () => {
    await stopSystem(system);
    await limit?.close();
    await runtime?.close();
  });

  function headersOf(key: string): Record<string, string> {
    return hasKeys ? { authorization: `Bearer ${key}` } : {};
  }

  it.skipIf(openRuntime !== undefined && !isRoot).each(attacks)(
    '$title',
    async ({ run, title }) => {
      const neighbor = { url: target.url, controlUrl, headers: headersOf(keys.neighbor) };
      const before = await readCpuWait(apiPid);
      const report = await watchBeside(neighbor, () => run(target));
      const slowness = slownessSince(before, await readCpuWait(apiPid));
      const peakMiB = Math.round(((await limit?.peakBytes()) ?? 0) / 2 ** 20);
      console.info(
        `${title}: /health p99 ${Math.round(report.healthP99Ms)} ms (control ${Math.round(report.controlP99Ms)},`,
        `CPU contention factor ${slowness.toFixed(1)}),`,
        `${report.outcomes.length} requests of the neighbor, memory peak ${peakMiB} MiB`,
      );
      expect(report.outcomes.filter((outcome) => outcome !== 'ok')).toEqual([]);
      expect(report.healthP99Ms).toBeLessThan(healthMaxMs * slowness);
      expect(await limit?.countKills()).toSatisfy((kills) => kills === undefined || kills === 0);
      expect(system.parts.filter(({ process }) => process.exitCode !== null || process.signalCode !== null)).toEqual(
        [],
      );
    },
    300_000,
  );
});
