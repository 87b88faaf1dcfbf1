import { CommandError } from '../command-error.ts';
import { brokenConnection, BrokenConnectionError } from './broken-connection-error.ts';

export interface HubFetchOptions {
  endpoint: string;
  repo: string;
  hasToken: boolean;
  signal: AbortSignal;
}

/**
 * The `fetch` that the hub's library is given. Its answers are good ones only: a refusal is a `CommandError` that says
 * what to do, everything that may pass is a `BrokenConnectionError`.
 */
export function createHubFetch(options: HubFetchOptions): typeof fetch {
  return async (input, init = {}) => {
    const signals = [options.signal, ...(init.signal ? [init.signal] : [])];
    let response: Response;
    try {
      response = await fetch(input, { ...init, signal: AbortSignal.any(signals) });
    } catch (error) {
      options.signal.throwIfAborted();
      throw brokenConnection('no answer', error);
    }
    if (response.ok) return response;
    // Or its connection would stay open.
    const body = await response.text().catch(() => '');
    if (response.status === 408 || response.status === 429 || response.status >= 500) {
      const retryAfterMs = Number(response.headers.get('retry-after')) * 1000 || undefined;
      throw new BrokenConnectionError(`the hub answers ${response.status}`, { retryAfterMs });
    }
    throw new CommandError(refusal(response, body, options));
  };
}

function refusal({ status, headers }: Response, body: string, { repo, endpoint, hasToken }: HubFetchOptions): string {
  const code = headers.get('x-error-code');
  const page = `${endpoint}/${repo}`;
  if (code === 'GatedRepo') {
    const token = hasToken ? 'with the account that HF_TOKEN is of' : 'and set HF_TOKEN to a token of that account';
    return `${repo} is gated: its authors want you to accept their conditions at ${page} first, ${token}.`;
  }
  if (code === 'RevisionNotFound') return `${repo} has no such branch, tag or commit (${status} from ${endpoint}).`;
  if (code === 'EntryNotFound') return `${repo} has no such file (${status} from ${endpoint}).`;
  if (status === 401 || status === 404) {
    // The hub does not tell a stranger whether a private repository exists.
    const token = hasToken ? 'HF_TOKEN may not read it' : 'it is private and HF_TOKEN is not set';
    return `There is no ${repo} at ${endpoint}, or ${token} (${status}).`;
  }
  if (status === 403) return `The hub forbids reading ${repo} (403)${hasToken ? ' with this HF_TOKEN' : ''}: ${page}`;
  const words = headers.get('x-error-message') ?? body.slice(0, 200);
  return `The hub answers ${status} for ${repo}${words === '' ? '' : `: ${words}`}.`;
}
