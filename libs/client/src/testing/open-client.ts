import { type Client, createClient } from '../client.ts';
import type { ClientOptions } from '../client-options.ts';
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

/** All of an iterator. */
export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}
