/** What went wrong, for the API to map to a status and for logs to group by. */
export type ErrorCode =
  | 'invalid_request'
  /** What it asks for, or what came of it, is not to be had here: by a checker's verdict. As OpenAI calls it. */
  | 'content_policy_violation'
  | 'not_found'
  | 'gone'
  | 'conflict'
  | 'overloaded'
  | 'unavailable'
  | 'model_unsupported'
  | 'worker_lost'
  | 'engine_failed'
  | 'out_of_memory'
  | 'internal';

const marker = Symbol.for('darkroom.error');

/**
 * The base of all errors we throw on purpose. Expected outcomes (a lost lease, an empty queue) are results instead.
 * `op`: the operation that failed, such as `store.admit-request`; logged, never shown. `message` is safe to show to
 * whoever sent the request: no path, no prompt, no stack.
 */
export class DarkroomError extends Error {
  readonly [marker] = true;
  readonly code: ErrorCode;
  readonly op: string;

  constructor(code: ErrorCode, op: string, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'DarkroomError';
    this.code = code;
    this.op = op;
  }

  /** Works across two copies of this package, where `instanceof` does not. */
  static isInstance(value: unknown): value is DarkroomError {
    return typeof value === 'object' && value !== null && marker in value;
  }
}
