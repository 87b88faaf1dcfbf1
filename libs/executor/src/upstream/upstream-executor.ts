import { DarkroomError } from '@darkroom/core';
import { CallExecutor, type CallOptions } from '../calls/call-executor.ts';
import type { Caller } from '../calls/caller.ts';
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
    const caller: Caller = {
      describe: (signal) => protocol.describe(signal),
      check: (signal) => protocol.check(signal),
      run: (call, signal) => named(http, protocol.run(call, signal)),
      rest: () => Promise.resolve(http.rest()),
    };
    super(caller, options);
  }
}

/** With the server's name before what goes wrong; what its sender is told has none. */
async function* named(http: UpstreamHttp, output: ReturnType<Caller['run']>): ReturnType<Caller['run']> {
  try {
    return yield* output;
  } catch (error) {
    throw DarkroomError.isInstance(error) && error.code === 'invalid_request' ? error : http.named(error);
  }
}
