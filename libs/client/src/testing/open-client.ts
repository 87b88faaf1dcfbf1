import { expect, onTestFinished, vi } from 'vitest';
import { type Client, createClient } from '../client.ts';
import type { ClientOptions } from '../options.ts';
import { type Answer, openScriptedServer, type ScriptedServer } from './scripted-server.ts';

export interface TestClient extends ScriptedServer {
  client: Client;
  /** The waits that the client requested, in milliseconds; the tests skip them. */
  waits: number[];
}

/** Creates a client of a scripted server that skips all waits. */
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

/** Creates a client with fake timers, so that its timeouts depend on the test and not on the machine's load. */
export function openClientWithFakeTimers(
  answers: readonly Answer[],
  options?: Partial<ClientOptions>,
): Promise<TestClient> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  return openClient(answers, options);
}

/** Advances the timers by `ms` repeatedly until the server has received so many requests. */
export async function advanceUntilRequested({ requests }: TestClient, times: number, ms: number): Promise<void> {
  await expect
    .poll(() => {
      // The last request must not time out.
      if (requests.length < times) vi.advanceTimersByTime(ms);
      return requests.length;
    })
    .toBe(times);
}

/** Collects all items of an iterator. */
export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}
