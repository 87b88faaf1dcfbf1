import { CallExecutor, type CallOptions } from '../calls/call-executor.ts';
import type { BackendClient } from '../calls/backend-client.ts';
import { UpstreamError } from '../calls/backend-error.ts';
import { withServerName } from './http/upstream-error.ts';
import { UpstreamHttp } from './http/upstream-http.ts';
import type { CreateUpstreamProtocol } from './upstream-protocol.ts';

/** Max time that a stop waits for aborted calls, such as a submission to a server that hangs, ms. */
const stopTimeoutMs = 5000;

export interface UpstreamExecutorOptions extends CallOptions {
  /** `http://host:port`, with a path prefix if the API has one. */
  url: string;
  key?: string | undefined;
  createProtocol: CreateUpstreamProtocol;
  /** The id under which the model is served. */
  model: string;
}

/** Forwards whole requests to a server that runs the model. */
export class UpstreamExecutor extends CallExecutor {
  constructor({ url, key, createProtocol, model, ...options }: UpstreamExecutorOptions) {
    const http = new UpstreamHttp({ url, key });
    const protocol = createProtocol({ http, model });
    const { name } = http;
    const calls = new Set<Promise<void>>();
    const caller: BackendClient = {
      name,
      describe: (signal) => naming(name, protocol.describe(signal)),
      check: (signal) => naming(name, protocol.check(signal).catch(ignoreBusy)),
      run: (call, signal) => tracking(calls, namingInRun(name, protocol.run(call, signal))),
      close: async (isForced) => {
        // Calls that were aborted cancel their work at the server.
        if (!isForced) await settledWithin(stopTimeoutMs, Promise.all(calls));
        http.close();
      },
    };
    super(caller, options);
  }
}

/** Resolves when the promise has resolved, or after the timeout. */
async function settledWithin(timeoutMs: number, ended: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([ended, new Promise((resolve) => (timer = setTimeout(resolve, timeoutMs)))]);
  clearTimeout(timer);
}

function ignoreBusy(error: unknown): void {
  if (!(error instanceof UpstreamError && error.isBusy)) throw error;
}

/** Prepends the server's name to the error of a rejected promise. */
function naming<Result>(name: string, result: Promise<Result>): Promise<Result> {
  return result.catch((error: unknown) => {
    throw withServerName(name, error);
  });
}

async function* namingInRun(name: string, output: ReturnType<BackendClient['run']>): ReturnType<BackendClient['run']> {
  try {
    return yield* output;
  } catch (error) {
    throw withServerName(name, error);
  }
}

/** Keeps a promise in the set until the call has ended. */
async function* tracking(calls: Set<Promise<void>>, call: ReturnType<BackendClient['run']>): typeof call {
  let end: (() => void) | undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  calls.add(ended);
  try {
    return yield* call;
  } finally {
    calls.delete(ended);
    end?.();
  }
}
