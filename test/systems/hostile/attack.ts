/** An attack by one client on a running system; `test/systems/hostile.test.ts` runs it with a neighbor beside. */
import type { System } from '../../e2e/system.ts';

export interface Target {
  system: System;
  /** Address of the API under attack. */
  url: string;
  /** Headers of the attacking client: its key, when the API has keys. */
  headers: Record<string, string>;
  /** Headers of another client. */
  otherHeaders: Record<string, string>;
}

export interface Attack {
  /** Expected behavior of the system under attack; the test title. */
  title: string;
  /** Sends the input and checks the answers. The harness checks the API's health, its memory and the other client. */
  run: (target: Target) => Promise<void>;
}

/** Attacks on one system. */
export interface AttackGroup {
  topic: string;
  /** Settings of all processes. */
  environment?: Record<string, string>;
  /** True (default): the API requires keys. False: it is open, as with `npm start`. */
  hasKeys?: boolean;
  /** Opens what runs the API under attack in place of Node. Needs root. */
  openRuntime?: () => Promise<{ execPath: string; close(): Promise<void> }>;
  attacks: readonly Attack[];
}

/** Posts a string unchanged, or any other body as JSON, as the attacking client; reads the full answer. */
export async function post(
  { url, headers }: Target,
  path: string,
  body: unknown,
): Promise<{ status: number; text: string; headers: Headers }> {
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  };
  // The server may close a keep-alive connection just as it is reused; like every SDK, send again.
  const response = await fetch(url + path, init).catch(() => fetch(url + path, init));
  return { status: response.status, text: await response.text(), headers: response.headers };
}
