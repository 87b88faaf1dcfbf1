/** What a call costs in commands to Redis. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { StoreConnection } from '@darkroom/store';
import { onTestFinished } from 'vitest';
import { connectToRedis } from './redis-proxy.ts';

/** What Redis was asked. */
export interface Costs {
  /** Commands that are sent, in lower case: a script goes by `evalsha`. */
  sent: string[];
  /** Commands that scripts run on our keys. */
  inScripts: string[];
  /** The same with all that they are given. */
  commands: string[][];
}

/** Of a line of MONITOR: who asked, which is `lua` for scripts, and the quoted words. */
const asked = /^\+[\d.]+ \[\d+ (?<source>[^\]]+)\] "(?<words>.*)"$/;

/** What Redis is asked on a store's keys while `act` runs, as Redis itself sees it. */
export async function createCostMeter({ redis, prefix }: StoreConnection) {
  // Not by ioredis, for which what other clients ask right after its MONITOR is an answer too many.
  const socket = connectToRedis();
  onTestFinished(() => void socket.destroy());
  const monitor = createInterface({ input: socket });
  let seen: Costs = { sent: [], inScripts: [], commands: [] };
  // One of its own: all who use this Redis are heard, other meters too.
  const mark = randomUUID();
  let atMark: (() => void) | undefined;
  monitor.on('line', (line) => {
    const { source, words = '' } = asked.exec(line)?.groups ?? {};
    const [name = '', ...args] = words.split('" "');
    if (args[0] === mark) atMark?.();
    else if (args.some((argument) => argument.startsWith(prefix))) {
      seen[source === 'lua' ? 'inScripts' : 'sent'].push(name.toLowerCase());
      if (source === 'lua') seen.commands.push([name.toLowerCase(), ...args]);
    }
  });
  socket.write('MONITOR\r\n');
  await once(monitor, 'line');
  // What was asked before a mark has been seen with it.
  const settle = async (): Promise<void> => {
    const isSeen = new Promise<void>((resolve) => (atMark = resolve));
    await redis.echo(mark);
    await isSeen;
  };
  return async (act: () => Promise<unknown>): Promise<Costs> => {
    await settle();
    const costs = (seen = { sent: [], inScripts: [], commands: [] });
    await act();
    await settle();
    seen = { sent: [], inScripts: [], commands: [] };
    return costs;
  };
}
