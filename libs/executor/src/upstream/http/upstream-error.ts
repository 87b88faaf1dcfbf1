import { DarkroomError } from '@darkroom/core';
import { unavailable, UpstreamError } from '../../calls/backend-error.ts';
import { textProperty } from './fields.ts';

/** Prepends the server's name to an error's message, unless the message is for the client. */
export function withServerName(name: string, error: unknown): DarkroomError {
  if (DarkroomError.isInstance(error) && error.code === 'invalid_request') return error;
  if (error instanceof UpstreamError) {
    const { code, message, retryAfterMs } = error;
    return new UpstreamError(code, `${name} ${message}`, { retryAfterMs, cause: error });
  }
  if (error instanceof SyntaxError) return unavailable(`${name} sent something that is not JSON`, error);
  const { code, name: kind } = error as { code?: unknown; name: string };
  return unavailable(
    `${name} cannot be reached, or broke the connection (${typeof code === 'string' ? code : kind})`,
    error,
  );
}

const maxReasonLength = 300;
/** A shared run of this many characters is not a coincidence. */
const secretRunLength = 12;
const hiddenReason = 'The server that runs this model refused the request.';

/** Error types that blame the server rather than the request; Darkroom's first. */
const serverErrorTypes = [
  'generation_error',
  'server_error',
  'internal_error',
  'api_error',
  'overloaded_error',
  'unavailable_error',
];

/** An error, extracted from the formats that servers use. */
export interface ReportedError {
  reason?: string;
  /** True if the request is at fault; undefined if unknown. */
  isRequestFault?: boolean;
}

/** Returns undefined if the body is not an error. */
export function errorIn(body: unknown): ReportedError | undefined {
  if (typeof body !== 'object' || body === null) return undefined;
  const { error, message, detail, type, code } = body as Record<string, unknown>;
  if (typeof error === 'object' && error !== null) return errorIn(error) ?? {};
  // FastAPI lists validation errors, each with a `msg`.
  const listed = Array.isArray(detail) ? textProperty(detail[0], 'msg') : undefined;
  const reason = [error, message, detail, listed].find((each) => typeof each === 'string' && each !== '') as
    | string
    | undefined;
  if (reason === undefined) return undefined;
  if (typeof type === 'string') return { reason, isRequestFault: !serverErrorTypes.includes(type) };
  return { reason, ...(typeof code === 'number' && { isRequestFault: code < 500 }) };
}

/** Returns an error reason that is safe for clients and logs: truncated, or a generic text if it contains a secret. */
export function safeReason(reason: string | undefined, secrets: readonly string[] = []): string {
  // A reason may be megabytes long. Search only as far as needed to find a secret that begins just before the cut.
  const seen = reason?.slice(0, maxReasonLength + secretRunLength);
  if (reason === undefined || seen === undefined || secrets.some((secret) => containsSecret(seen, secret.trim())))
    return hiddenReason;
  return wellFormed(reason.length > maxReasonLength ? `${reason.slice(0, maxReasonLength - 1)}…` : reason);
}

/** Replaces unpaired surrogates, which a cut may leave: the store's scripts cannot decode them. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}

/** Returns true if the text contains a run of 12 characters of the secret, or a shorter secret as a whole. */
function containsSecret(text: string, secret: string): boolean {
  const length = Math.min(secretRunLength, secret.length);
  if (length <= 2) return false;
  for (let at = 0; at + length <= text.length; at++) if (secret.includes(text.slice(at, at + length))) return true;
  return false;
}

/** Converts an error event of a stream. */
export function streamFailure(
  { reason, isRequestFault = false }: ReportedError,
  secrets: readonly string[],
): UpstreamError {
  const shownReason = safeReason(reason, secrets);
  return isRequestFault ? new UpstreamError('invalid_request', shownReason) : unavailable(`broke off: ${shownReason}`);
}
