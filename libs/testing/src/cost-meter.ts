/** What a call costs in commands to Redis. */
import { randomUUID } from 'node:crypto';
import type { StoreConnection } from '@darkroom/store';
import { expect, onTestFinished } from 'vitest';

/** What Redis was asked. */
export interface Costs {
  /** Commands that are sent, in lower case: a script goes by `evalsha`. */
  sent: string[];
  /** Commands that scripts run on our keys. */
  inScripts: string[];
  /** The same with all that they are given. */
  commands: string[][];
}

/** What Redis is asked on a store's keys while `act` runs, as Redis itself sees it. */
export async function createCostMeter(store: StoreConnection) {
  const { redis, prefix } = store;
  const monitor = await store.masters()[0]!.monitor();
  onTestFinished(() => monitor.disconnect());
  let seen: Costs = { sent: [], inScripts: [], commands: [] };
  let lastMark = '';
  monitor.on('monitor', (_time: string, [name = '', ...args]: string[], source: string) => {
    if (name === 'echo') lastMark = args[0]!;
    else if (args.some((argument) => argument.startsWith(prefix))) {
      seen[source === 'lua' ? 'inScripts' : 'sent'].push(name.toLowerCase());
      if (source === 'lua') seen.commands.push([name.toLowerCase(), ...args]);
    }
  });
  // What was asked before a mark has been seen with it.
  const settle = async (): Promise<void> => {
    const mark = randomUUID();
    await redis.echo(mark);
    await expect.poll(() => lastMark).toBe(mark);
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
