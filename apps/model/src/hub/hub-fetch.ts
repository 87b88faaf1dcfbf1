import { CommandError } from '../command/command-error.ts';
import { brokenConnection, BrokenConnectionError } from './broken-connection-error.ts';
import type { RetryOptions } from './retrying.ts';

/** A repository of the hub and how to access it. */
export interface HubAccess extends RetryOptions {
  endpoint: string;
  token: string | undefined;
  /** For example `owner/name`. */
  repo: string;
  /** Timeout of a connection without data, ms. */
  stallMs?: number;
}

/**
 * Fetches from the hub; returns only successful responses.
 *
 * @throws CommandError for a refusal, with what to do; BrokenConnectionError for errors that may pass.
 */
export async function fetchFromHub(access: HubAccess, ...[input, init]: Parameters<typeof fetch>): Promise<Response> {
  const signals = [access.signal, ...(init?.signal ? [init.signal] : [])];
  let response: Response;
  try {
    response = await fetch(input, { ...init, signal: AbortSignal.any(signals) });
  } catch (error) {
    access.signal.throwIfAborted();
    throw brokenConnection('no answer', error);
  }
  if (response.ok) return response;
  // Read the body, or the connection would stay open.
  const body = await response.text().catch(() => '');
  if (response.status === 408 || response.status === 429 || response.status >= 500) {
    const retryAfterMs = Number(response.headers.get('retry-after')) * 1000 || undefined;
    throw new BrokenConnectionError(`the hub answers ${response.status}`, { retryAfterMs });
  }
  throw new CommandError(refusal(response, body, access));
}

function refusal({ status, headers }: Response, body: string, { repo, endpoint, token }: HubAccess): string {
  const code = headers.get('x-error-code');
  const page = `${endpoint}/${repo}`;
  if (code === 'GatedRepo') {
    const account = token ? 'with the account that HF_TOKEN is of' : 'and set HF_TOKEN to a token of that account';
    return `${repo} is gated: its authors want you to accept their conditions at ${page} first, ${account}.`;
  }
  if (code === 'RevisionNotFound') return `${repo} has no such branch, tag or commit (${status} from ${endpoint}).`;
  if (code === 'EntryNotFound') return `${repo} has no such file (${status} from ${endpoint}).`;
  if (status === 401 || status === 404) {
    // The hub does not reveal whether a private repository exists.
    const reason = token ? 'HF_TOKEN may not read it' : 'it is private and HF_TOKEN is not set';
    return `There is no ${repo} at ${endpoint}, or ${reason} (${status}).`;
  }
  if (status === 403) return `The hub forbids reading ${repo} (403)${token ? ' with this HF_TOKEN' : ''}: ${page}`;
  const words = headers.get('x-error-message') ?? body.slice(0, 200);
  return `The hub answers ${status} for ${repo}${words === '' ? '' : `: ${words}`}.`;
}
