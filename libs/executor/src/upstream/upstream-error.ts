import { DarkroomError } from '@darkroom/core';
import { textOf } from './fields.ts';

type UpstreamErrorCode = 'invalid_request' | 'unavailable' | 'model_unsupported';

/**
 * What went wrong with an upstream, by its code: `invalid_request` is about one request, whose sender is told; `unavailable`
 * may be over by itself, and the request can be tried again; `model_unsupported` takes an operator: it is no such server, or
 * does not take the key.
 */
export class UpstreamError extends DarkroomError {
  declare readonly code: UpstreamErrorCode;
  /** When it is worth another try, ms. */
  readonly retryAfterMs: number;
  /** It lives, and has no time now. */
  readonly isBusy: boolean;

  constructor(
    code: UpstreamErrorCode,
    message: string,
    { retryAfterMs = 0, isBusy = false, cause }: { retryAfterMs?: number; isBusy?: boolean; cause?: unknown } = {},
  ) {
    super(code, 'executor.upstream', message, cause);
    this.name = 'UpstreamError';
    this.retryAfterMs = retryAfterMs;
    this.isBusy = isBusy;
  }
}

/** What may be over by itself, in words that its server's name goes before. */
export function unavailable(message: string, cause?: unknown): UpstreamError {
  return new UpstreamError('unavailable', message, { cause });
}

/** Whatever went wrong, with the server's name before it. What the sender of a request is told has none. */
export function named(name: string, error: unknown): DarkroomError {
  if (DarkroomError.isInstance(error) && error.code === 'invalid_request') return error;
  if (error instanceof UpstreamError) {
    const { code, message, retryAfterMs } = error;
    return new UpstreamError(code, `${name} ${message}`, { retryAfterMs, cause: error });
  }
  if (error instanceof SyntaxError) return unavailable(`${name} sent something that is no JSON`, error);
  const { code, name: kind } = error as { code?: unknown; name: string };
  return unavailable(`${name} cannot be reached, or broke off (${typeof code === 'string' ? code : kind})`, error);
}

const longestReason = 300;
/** A run of so many characters is no accident. */
const quoted = 12;
const unsaid = 'The server that runs this model refused the request.';

/** By which they say that it is not the request's doing; Darkroom's first. */
const typesOfTheirs = [
  'generation_error',
  'server_error',
  'internal_error',
  'api_error',
  'overloaded_error',
  'unavailable_error',
];

/** What an error says, in the ways that servers say it. */
export interface SaidError {
  reason?: string;
  /** Whether it is about the request; undefined where that is not said. */
  isOfRequest?: boolean;
}

/** Undefined if it is no error. */
export function errorIn(body: unknown): SaidError | undefined {
  if (typeof body !== 'object' || body === null) return undefined;
  const { error, message, detail, type, code } = body as Record<string, unknown>;
  if (typeof error === 'object' && error !== null) return errorIn(error) ?? {};
  // FastAPI lists what is wrong, each with its `msg`.
  const listed = Array.isArray(detail) ? textOf(detail[0], 'msg') : undefined;
  const reason = [error, message, detail, listed].find((each) => typeof each === 'string' && each !== '') as
    | string
    | undefined;
  if (reason === undefined) return undefined;
  if (typeof type === 'string') return { reason, isOfRequest: !typesOfTheirs.includes(type) };
  return { reason, ...(typeof code === 'number' && { isOfRequest: code < 500 }) };
}

/** A reason as its sender may see it, and logs may keep it: cut short, and nothing if it holds a secret. */
export function shownReason(reason: string | undefined, secrets: readonly string[] = []): string {
  // A reason may be megabytes, and a secret may begin just before the cut: no more is looked at than it takes to find that.
  const seen = reason?.slice(0, longestReason + quoted);
  if (reason === undefined || seen === undefined || secrets.some((secret) => holds(seen, secret.trim()))) return unsaid;
  return wellFormed(reason.length > longestReason ? `${reason.slice(0, longestReason - 1)}…` : reason);
}

/** Without half characters, which a cut leaves: the store's scripts cannot read them. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}

/** Whether a run of the secret stands in the text, wherever it begins; all of it where it is short. */
function holds(text: string, secret: string): boolean {
  const length = Math.min(quoted, secret.length);
  if (length <= 2) return false;
  for (let at = 0; at + length <= text.length; at++) if (secret.includes(text.slice(at, at + length))) return true;
  return false;
}

/** What a stream says went wrong. */
export function streamFailure({ reason, isOfRequest = false }: SaidError, secrets: readonly string[]): UpstreamError {
  const shown = shownReason(reason, secrets);
  return isOfRequest ? new UpstreamError('invalid_request', shown) : unavailable(`broke off: ${shown}`);
}
