import { stdSerializers } from 'pino';

/** Fields of an error that are logged besides its type, message and stack. */
const loggedFields = ['code', 'op', 'errno', 'syscall', 'address', 'port', 'path', 'signal'] as const;

/**
 * Serializes an error for the log. Omits unknown properties, which may contain anything: ioredis attaches the command
 * with all its arguments, and so the request with its prompt.
 */
export function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  // Includes the messages and stacks of its causes.
  const { type, message, stack } = stdSerializers.err(error);
  const serialized: Record<string, unknown> = { type, message, stack };
  const fields = error as unknown as Record<string, unknown>;
  for (const name of loggedFields) if (isPlain(fields[name])) serialized[name] = fields[name];
  const command = fields['command'];
  if (typeof command === 'object' && command !== null && 'name' in command) serialized['command'] = command.name;
  if (error instanceof AggregateError) serialized['aggregateErrors'] = error.errors.map(serializeError);
  return serialized;
}

function isPlain(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number';
}
