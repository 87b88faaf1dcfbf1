import type { Call, Caller, CallerFacts } from '../calls/caller.ts';
import type { UpstreamHttp } from './upstream-http.ts';

export type UpstreamFacts = CallerFacts;
export type UpstreamCall = Call;

/** One way to speak to a server that runs a model. All of it throws `UpstreamError`s. */
export type UpstreamProtocol = Omit<Caller, 'name' | 'rest'>;

export interface UpstreamProtocolOptions {
  http: UpstreamHttp;
  /** The id by which it is served here, and by which the server knows it where it has several. */
  model: string;
}

export type CreateUpstreamProtocol = (options: UpstreamProtocolOptions) => UpstreamProtocol;
