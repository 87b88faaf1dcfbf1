import type { BackendCall, BackendClient, BackendInfo } from '../calls/backend-client.ts';
import type { UpstreamHttp } from './http/upstream-http.ts';

export type UpstreamInfo = BackendInfo;
export type UpstreamCall = BackendCall;

/** Client of one kind of API. All methods throw `UpstreamError`s. */
export type UpstreamProtocol = Omit<BackendClient, 'name' | 'close'>;

export interface UpstreamProtocolOptions {
  http: UpstreamHttp;
  /** The model's id, here and at the server if it has several models. */
  model: string;
}

export type CreateUpstreamProtocol = (options: UpstreamProtocolOptions) => UpstreamProtocol;
