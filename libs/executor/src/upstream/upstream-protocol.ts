import type { ModelCard, RowEvent, RowOutput } from '@darkroom/core';
import type { UpstreamHttp } from './upstream-http.ts';

export interface UpstreamFacts {
  readonly card: ModelCard;
  /** Requests that it serves at once; absent where the protocol does not say. */
  readonly slots?: number;
}

/** One way to speak to a server that runs a model. All of it throws `UpstreamError`s. */
export interface UpstreamProtocol {
  /** What the server has; to be called before the others, and again after it was away. */
  describe(signal: AbortSignal): Promise<UpstreamFacts>;
  /** Throws where it is not ready. */
  check(signal: AbortSignal): Promise<void>;
  /** Makes one output of a request by one call: says what comes, and gives out the whole. */
  run(call: UpstreamCall, signal: AbortSignal): AsyncGenerator<RowEvent, RowOutput, void>;
}

export interface UpstreamCall {
  readonly input: unknown;
  readonly index: number;
}

export interface UpstreamProtocolOptions {
  http: UpstreamHttp;
  /** The id by which it is served here, and by which the server knows it where it has several. */
  model: string;
}

export type CreateUpstreamProtocol = (options: UpstreamProtocolOptions) => UpstreamProtocol;
