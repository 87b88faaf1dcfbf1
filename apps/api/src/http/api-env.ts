import type { ServerResponse } from 'node:http';
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { ErrorView } from './api-error.ts';

/** An API key and its limits. Keys with the same name belong to one owner and have the same limits. */
export interface ApiKey {
  /** Owner of the requests sent with the key. */
  name: string;
  /** Fair-share weight relative to other owners with waiting requests. */
  weight: number;
  /** Undefined for no limit. */
  requestsPerMinute: number | undefined;
  /** Queued and running at once; undefined for no limit. */
  openRequests: number | undefined;
  isAdmin: boolean;
  /** Only the hash of the key is known, so its length is checked on use. */
  isHashed?: true;
  /** The key was added through the API and is stored in Redis. */
  isStored?: true;
  /** Aborts when the key is removed or revoked, which ends its streams; absent for keys of the settings. */
  revocation?: AbortController;
}

/** Bindings of the Node server; empty in tests that call the app directly. */
export interface ServerCall {
  outgoing?: ServerResponse;
  /** Set by a handler that writes the body to `outgoing` itself, after the server has written the head. */
  writeBody?: () => Promise<void>;
}

/** Hono environment of a call: server bindings and variables that middleware sets. */
export interface ApiEnv {
  Bindings: ServerCall;
  Variables: {
    /** Name of the API key; `''` on servers without keys. */
    owner: string;
    apiKey: ApiKey;
    /** True once the call was counted against the key's requests per minute. */
    isCounted: boolean | undefined;
    /** PUBLIC_URL, if set; without a trailing slash. */
    publicUrl: string | undefined;
    /** Path under which a proxy serves this API, such as `/darkroom`, or empty. */
    pathPrefix: string | undefined;
    requestId: string | undefined;
    errorId: string | undefined;
    /** Formats errors in the shape of the compat API that this route belongs to. */
    errorView: ErrorView | undefined;
  };
}

export type Api = OpenAPIHono<ApiEnv>;

/** Hono context of one HTTP request in progress. */
export type ApiCall = Context<ApiEnv>;
