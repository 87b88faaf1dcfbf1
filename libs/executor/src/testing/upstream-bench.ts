/** An executor in front of fake servers, for tests of its behaviour on their faults. */
import type { UpstreamTextInput } from '@darkroom/kinds';
import { onTestFinished } from 'vitest';
import { EventLog } from '../conformance/event-log.ts';
import { createLlamaCpp } from '../upstream/llama-cpp.ts';
import { createOpenai } from '../upstream/openai.ts';
import { UpstreamExecutor, type UpstreamExecutorOptions } from '../upstream/upstream-executor.ts';
import { ToyLlamaCpp } from './toy-llama-cpp.ts';
import { ToyOpenai } from './toy-openai.ts';
import type { ToyFault } from './toy-server.ts';

export const key = 'sk-0123456789abcdef';
const protocols = { 'llama.cpp': createLlamaCpp, openai: createOpenai };
export const toys = { 'llama.cpp': ToyLlamaCpp, openai: ToyOpenai };
export type UpstreamApi = keyof typeof toys;
export const upstreamApis = Object.keys(toys) as UpstreamApi[];

export function upstreamInput(prompt: string, changes: Partial<UpstreamTextInput> = {}): UpstreamTextInput {
  return { params: { prompt, max_tokens: 5 }, n: 1, seed: 1, maxTokens: 5, ...changes };
}

/** Creates an executor that runs no periodic health checks and records all events and waits. */
export function executorOf(api: UpstreamApi, url: string, options: Partial<UpstreamExecutorOptions> = {}) {
  const log = new EventLog();
  const waits: string[] = [];
  let resolveWaited: ((reason: string) => void) | undefined;
  /** The first reason to wait. */
  const waited = new Promise<string>((resolve) => (resolveWaited = resolve));
  const executor = new UpstreamExecutor({
    url,
    key,
    createProtocol: protocols[api],
    model: 'toy_writer',
    maxSlots: 2,
    retryMs: 1,
    checkEveryMs: 600_000,
    onEvents: log.listener,
    onWaiting: (reason) => {
      waits.push(reason);
      resolveWaited?.(reason);
    },
    ...options,
  });
  onTestFinished(() => executor.shutdown());
  return { log, waits, waited, executor };
}

export async function open(api: UpstreamApi, options: Partial<UpstreamExecutorOptions> = {}) {
  const toy = new toys[api]();
  const url = await toy.start();
  const made = executorOf(api, url, options);
  onTestFinished(() =>
    made.executor
      .shutdown()
      .then(() => toy.stop())
      .then(() => {}),
  );
  return { toy, url, ...made };
}

/** A fault that responds with a stream of these parts. */
export const streams =
  (...parts: (string | Uint8Array)[]): ToyFault =>
  (_request, response, body) => {
    if (body === undefined) return false;
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    for (const part of parts) response.write(part);
    response.end();
    return true;
  };

export const line = (content: string): string =>
  `data: ${JSON.stringify({ content, stop: false, choices: [{ text: content, finish_reason: null }] })}\n\n`;
