/** Kinds of faults. Each `run` injects the fault and resolves when it is over. */
import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { readWorkers } from '@darkroom/store';
import type { Dice } from '../dice.ts';
import type { History } from '../history.ts';
import type { Member } from '../system/member.ts';
import type { ChaosSystem } from '../system/system.ts';

/** WORKER_TTL_MS: a worker without a heartbeat for this long is dead. */
const workerTtlMs = 3000;
const faketime = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';

export interface Scene {
  system: ChaosSystem;
  dice: Dice;
  history: History;
}

/** Calls `hit` once the target is known. No other fault hits the same member meanwhile. */
type Fault = (scene: Scene, member: Member, hit: (target: string, work?: Work) => void) => Promise<void>;

/** Requests that a worker had, and the other workers with capacity for all of them at that time. */
export interface Work {
  hit: string[];
  room: string[];
}

interface FaultKind {
  about: string;
  /** Relative frequency. */
  weight: number;
  run: Fault;
  /** Returns whether this machine and system support the fault (default: yes). */
  isPossible?: (system: ChaosSystem) => boolean;
  /** Returns whether the fault may hit a member (default: any). */
  canHit?: (member: Member) => boolean;
}

function downMs(dice: Dice): number {
  return dice.chance(0.5) ? 0 : dice.between(100, 3000);
}

/** Reads the requests that a worker has now. */
async function workOf({ store, members }: ChaosSystem, member: Member): Promise<Work> {
  const work: Work = { hit: [], room: [] };
  for (const { model, id } of member.workers) {
    const leases = Object.entries(await store.redis.hgetall(store.keysOf(model).leases(id)));
    work.hit.push(...leases.map(([lease]) => lease.split(' ')[0]!));
    const slots = leases.reduce((sum, [, lease]) => sum + Number(lease.split(' ')[0]), 0);
    const others = members.filter((other) => other !== member && !other.hasFault);
    for (const { workerId, isLoaded, freeSlots } of await readWorkers(store, model, 10)) {
      const other = others.find(({ workers }) => workers.some((worker) => worker.id === workerId));
      if (other !== undefined && isLoaded && freeSlots >= slots) work.room.push(other.name);
    }
  }
  return work;
}

const isWorker = ({ app }: Member): boolean => app === 'worker';
const hasProxies = ({ redis }: ChaosSystem): boolean => redis.port !== undefined;
const hasEngine = (member: Member): boolean => isWorker(member) && member.children.length > 0;

/** Sends a signal; ignores a process that has exited. */
function signalPid(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function freeze(pid: number, forMs: number): Promise<void> {
  signalPid(pid, 'SIGSTOP');
  await delay(forMs);
  signalPid(pid, 'SIGCONT');
}

export const faultKinds: Record<string, FaultKind> = {
  kill: {
    about: 'SIGKILL of an api, batch-former, worker, janitor or webhook-sender, restarted after 0 to 3 s',
    weight: 6,
    async run({ dice }, member, hit) {
      hit(member.name);
      await member.end('SIGKILL', downMs(dice));
    },
  },
  worker: {
    about: 'SIGKILL of a worker while it runs requests',
    weight: 3,
    canHit: isWorker,
    async run({ system, dice }, member, hit) {
      let work: Work = { hit: [], room: [] };
      for (let tries = 0; tries < 100 && work.hit.length === 0; tries++) {
        await delay(50);
        work = await workOf(system, member);
      }
      const ending = member.end('SIGKILL', downMs(dice));
      hit(member.name, work);
      await ending;
    },
  },
  stop: {
    about: 'SIGTERM of a process, restarted after 0 to 3 s',
    weight: 4,
    async run({ dice }, member, hit) {
      hit(member.name);
      await member.end('SIGTERM', downMs(dice));
    },
  },
  freeze: {
    about: 'SIGSTOP of a process for three worker TTLs, then SIGCONT (zombie)',
    weight: 3,
    async run(_scene, member, hit) {
      hit(member.name);
      await freeze(member.pid, 3 * workerTtlMs);
    },
  },
  engine: {
    about: 'SIGKILL of an engine or module process, or SIGSTOP for three worker TTLs',
    weight: 3,
    canHit: hasEngine,
    async run({ dice }, member, hit) {
      const pid = dice.pick(member.children);
      if (pid === undefined) return;
      const isKill = dice.chance(0.7);
      hit(`${isKill ? 'SIGKILL' : 'SIGSTOP'} ${member.name}`);
      if (!isKill) return freeze(pid, 3 * workerTtlMs);
      member.allowErrorExit();
      signalPid(pid, 'SIGKILL');
    },
  },
  upstream: {
    about: 'SIGKILL or SIGSTOP of the upstream server of the workers with EXECUTOR=http, or a cut of its connections',
    weight: 1,
    canHit: ({ name }) => name.startsWith('upstream'),
    async run({ system, dice }, _member, hit) {
      const what = dice.pick(['SIGKILL', 'SIGSTOP', 'cut'] as const);
      hit(what);
      if (what === 'SIGKILL') await system.upstream.kill(downMs(dice));
      else if (what === 'SIGSTOP') await freeze(system.upstream.pid(), 3 * workerTtlMs);
      else system.upstream.cut();
    },
  },
  store: {
    about: 'SIGKILL of the S3 server with the images (--bytes s3), restarted after 0 to 3 s',
    weight: 1,
    isPossible: ({ bytes }) => bytes.kill !== undefined,
    async run({ system, dice }, _member, hit) {
      hit('SIGKILL');
      await system.bytes.kill?.(downMs(dice));
    },
  },
  redis: {
    about: 'SIGKILL or SIGTERM of redis-server, restarted after 0 to 3 s, or once a replica is promoted',
    weight: 3,
    async run({ system, dice }, _member, hit) {
      const signal = dice.chance(0.7) ? 'SIGKILL' : 'SIGTERM';
      hit(signal);
      await system.redis.end(signal, downMs(dice));
    },
  },
  pubsub: {
    about: 'CLIENT KILL TYPE pubsub: all subscriptions are disconnected',
    weight: 1,
    async run({ system }, _member, hit) {
      hit('redis');
      for (const server of system.store.masters()) await server.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    },
  },
  scripts: {
    about: 'SCRIPT FLUSH: Redis forgets all Lua scripts',
    weight: 1,
    async run({ system }, _member, hit) {
      hit('redis');
      for (const server of system.store.masters()) await server.call('SCRIPT', 'FLUSH');
    },
  },
  slow: {
    about: "a process's traffic to and from Redis is delayed by 20 to 200 ms, for 3 to 10 s",
    weight: 1.5,
    isPossible: hasProxies,
    async run({ dice }, { name, proxy }, hit) {
      hit(name);
      proxy!.delayMs = dice.between(20, 200);
      await delay(dice.between(3000, 10_000));
      proxy!.delayMs = 0;
    },
  },
  cut: {
    about: "a process's connections to Redis are closed, and new ones refused for 0 to 8 s",
    weight: 2,
    isPossible: hasProxies,
    async run({ dice }, { name, proxy }, hit) {
      hit(name);
      proxy!.isRefusing = true;
      proxy!.cut();
      await delay(dice.chance(0.5) ? 0 : dice.between(500, 8000));
      proxy!.isRefusing = false;
    },
  },
  answers: {
    about: "Redis runs a process's next command, and the connection closes before the answer",
    weight: 3,
    isPossible: hasProxies,
    async run(_scene, { name, proxy }, hit) {
      hit(name);
      proxy!.loseNextAnswer();
    },
  },
  silence: {
    about: "a process's connections to Redis stay open and carry no data; new connections work",
    weight: 0.7,
    isPossible: hasProxies,
    async run(_scene, { name, proxy }, hit) {
      hit(name);
      proxy!.silence();
      // Long enough for the process to detect the dead connections.
      await delay(30_000);
    },
  },
  disk: {
    about: 'the disk under the append-only file is full for 1 to 4 s',
    weight: 0.5,
    isPossible: ({ redis }) => redis.hasDisk,
    async run({ system, dice }, _member, hit) {
      hit('redis');
      await system.redis.fill(dice.between(1000, 4000));
    },
  },
  version: {
    about: 'a process is replaced by an older version (--older), and back after 15 to 40 s',
    weight: 2,
    isPossible: ({ older }) => older !== undefined,
    async run({ system, dice }, member, hit) {
      hit(member.name);
      member.root = system.older;
      await member.end('SIGTERM', 0);
      await delay(dice.between(15_000, 40_000));
      member.root = undefined;
      await member.end('SIGTERM', 0);
    },
  },
  clock: {
    about: "a process's clock is 30 s or 11 minutes ahead or behind, for 15 to 40 s (libfaketime)",
    weight: 1,
    isPossible: () => existsSync(faketime),
    async run({ dice }, member, hit) {
      const offset = dice.pick(['-11m', '-30s', '+30s', '+11m']);
      hit(`${member.name} ${offset}`);
      member.extraEnvironment = { LD_PRELOAD: faketime, FAKETIME: offset, FAKETIME_DONT_FAKE_MONOTONIC: '1' };
      await member.end('SIGKILL', 0);
      await delay(dice.between(15_000, 40_000));
      member.extraEnvironment = {};
      await member.end('SIGKILL', 0);
    },
  },
};
