import { CallExecutor, type CallOptions } from '../calls/call-executor.ts';
import type { Caller } from '../calls/caller.ts';
import { named, UpstreamError } from './upstream-error.ts';
import { UpstreamHttp } from './upstream-http.ts';
import type { CreateUpstreamProtocol } from './upstream-protocol.ts';

export interface UpstreamExecutorOptions extends CallOptions {
  /** `http://host:port`, with a path before those of its API if it has one. */
  url: string;
  key?: string | undefined;
  createProtocol: CreateUpstreamProtocol;
  /** As it is served here. */
  model: string;
}

/** Forwards whole requests to a server that runs the model. */
export class UpstreamExecutor extends CallExecutor {
  constructor({ url, key, createProtocol, model, ...options }: UpstreamExecutorOptions) {
    const http = new UpstreamHttp({ url, key });
    const protocol = createProtocol({ http, model });
    const { name } = http;
    const caller: Caller = {
      name,
      describe: (signal) => byName(name, protocol.describe(signal)),
      check: (signal) => byName(name, protocol.check(signal).catch(unlessBusy)),
      run: (call, signal) => callByName(name, protocol.run(call, signal)),
      rest: () => Promise.resolve(http.rest()),
    };
    super(caller, options);
  }
}

function unlessBusy(error: unknown): void {
  if (!(error instanceof UpstreamError && error.isBusy)) throw error;
}

/** With the server's name in what goes wrong. */
function byName<Result>(name: string, asked: Promise<Result>): Promise<Result> {
  return asked.catch((error: unknown) => {
    throw named(name, error);
  });
}

async function* callByName(name: string, output: ReturnType<Caller['run']>): ReturnType<Caller['run']> {
  try {
    return yield* output;
  } catch (error) {
    throw named(name, error);
  }
}
