import { stdSerializers } from 'pino';

/** All that is kept of an error besides its type, message and stack: what operators search for. */
const keptFields = ['code', 'op', 'errno', 'syscall', 'address', 'port', 'path', 'signal'] as const;

/**
 * An error as it is logged. Its other properties stay out, since nobody knows what they hold: ioredis puts the whole
 * command on its errors, and with that the envelope and the prompt.
 */
export function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  // With the messages and stacks of its causes.
  const { type, message, stack } = stdSerializers.err(error);
  const serialized: Record<string, unknown> = { type, message, stack };
  const fields = error as unknown as Record<string, unknown>;
  for (const name of keptFields) if (isPlain(fields[name])) serialized[name] = fields[name];
  const command = fields['command'];
  if (typeof command === 'object' && command !== null && 'name' in command) serialized['command'] = command.name;
  if (error instanceof AggregateError) serialized['aggregateErrors'] = error.errors.map(serializeError);
  return serialized;
}

function isPlain(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number';
}
