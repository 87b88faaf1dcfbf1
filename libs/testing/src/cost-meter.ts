/** Measures the Redis commands of a call. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { StoreConnection } from '@darkroom/store';
import { onTestFinished } from 'vitest';
import { connectToRedis } from './redis-proxy.ts';

/** Commands that Redis executed. */
export interface Costs {
  /** Commands sent by clients, in lower case; a script counts as `evalsha`. */
  sent: string[];
  /** Commands run by scripts on our keys. */
  inScripts: string[];
  /** The commands run by scripts, with their arguments. */
  commands: string[][];
}

/** Parses a line of MONITOR: the client, which is `lua` for scripts, and the quoted words. */
const monitorLine = /^\+[\d.]+ \[\d+ (?<source>[^\]]+)\] "(?<words>.*)"$/;

/** Creates a meter that returns the commands on a store's keys while `act` runs, as Redis reports them. */
export async function createCostMeter({ redis, prefix }: StoreConnection) {
  // Not by ioredis, which takes commands of other clients right after its MONITOR for unexpected replies.
  const socket = connectToRedis();
  onTestFinished(() => void socket.destroy());
  const monitor = createInterface({ input: socket });
  let seen: Costs = { sent: [], inScripts: [], commands: [] };
  // Unique: MONITOR shows the commands of all clients of this Redis, including other meters.
  const mark = randomUUID();
  let atMark: (() => void) | undefined;
  monitor.on('line', (line) => {
    const { source, words = '' } = monitorLine.exec(line)?.groups ?? {};
    const [name = '', ...args] = words.split('" "');
    if (args[0] === mark) atMark?.();
    else if (args.some((argument) => argument.startsWith(prefix))) {
      seen[source === 'lua' ? 'inScripts' : 'sent'].push(name.toLowerCase());
      if (source === 'lua') seen.commands.push([name.toLowerCase(), ...args]);
    }
  });
  socket.write('MONITOR\r\n');
  await once(monitor, 'line');
  // Once the mark is seen, all earlier commands have been seen too.
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
