import type { ServerResponse } from 'node:http';
import type { Context } from 'hono';
import type { ApiKey } from '../auth/api-keys.ts';
import type { ErrorView } from './api-error.ts';

/** What the server knows of a call; nothing where there is no server. */
export interface ServerCall {
  outgoing?: ServerResponse;
  /** Set by an answer that writes its own body, behind the head that the server writes. */
  writeBody?: () => Promise<void>;
}

/** What is known of a request to the API besides itself. */
export interface ApiEnv {
  Bindings: ServerCall;
  Variables: {
    /** The name of the API key; `''` where none is needed. */
    owner: string;
    apiKey: ApiKey;
    /** Its key's requests per minute have it already. */
    isCounted: boolean | undefined;
    requestId: string | undefined;
    errorId: string | undefined;
    /** What errors look like on this route, where it speaks as another API. */
    errorView: ErrorView | undefined;
  };
}

/** One HTTP request under way. */
export type ApiCall = Context<ApiEnv>;
