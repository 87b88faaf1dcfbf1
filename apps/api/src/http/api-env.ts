import type { Context } from 'hono';
import type { ApiKey } from '../auth/api-keys.ts';
import type { ErrorView } from './api-error.ts';

/** What is known of a request to the API besides itself. */
export interface ApiEnv {
  Variables: {
    /** The name of the API key; `''` where none is needed. */
    owner: string;
    apiKey: ApiKey;
    requestId: string | undefined;
    errorId: string | undefined;
    /** What errors look like on this route, where it speaks as another API. */
    errorView: ErrorView | undefined;
  };
}

/** One HTTP request under way. */
export type ApiCall = Context<ApiEnv>;
