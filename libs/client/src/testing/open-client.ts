import { expect, onTestFinished, vi } from 'vitest';
import { type Client, createClient } from '../client.ts';
import type { ClientOptions } from '../options.ts';
import { type Answer, openScriptedServer, type ScriptedServer } from './scripted-server.ts';

export interface TestClient extends ScriptedServer {
  client: Client;
  /** The waits that the client asked for, in milliseconds; none was waited. */
  waits: number[];
}

/** A client on a scripted server, whose waits are over at once. */
export async function openClient(
  answers: readonly Answer[],
  options: Partial<ClientOptions> = {},
): Promise<TestClient> {
  const scripted = await openScriptedServer(answers);
  const waits: number[] = [];
  const delay = async (ms: number, signal: AbortSignal | undefined): Promise<void> => {
    signal?.throwIfAborted();
    waits.push(ms);
  };
  const client = createClient({ baseUrl: scripted.url, delay, random: () => 0, ...options });
  return { ...scripted, client, waits };
}

/** A client whose patience ends when the test says so, not when the machine has other things to do. */
export function openPatientClient(answers: readonly Answer[], options?: Partial<ClientOptions>): Promise<TestClient> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  return openClient(answers, options);
}

/** Lets `ms` go by, again and again, until the server has been asked so many times. */
export async function passUntilAsked({ asked }: TestClient, times: number, ms: number): Promise<void> {
  await expect
    .poll(() => {
      // What is asked last gets its answer in time.
      if (asked.length < times) vi.advanceTimersByTime(ms);
      return asked.length;
    })
    .toBe(times);
}

/** All of an iterator. */
export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}
