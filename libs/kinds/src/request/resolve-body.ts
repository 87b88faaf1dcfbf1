import { type FieldProblem, fieldProblems, invalidValue } from '@darkroom/core';
import type { z } from 'zod';
import type { ResolveResult } from './kind.ts';
import { defaultPriority, type RequestFields, type RequestPolicy } from './request-fields.ts';
import { resolveWebhook, webhookProblems } from './webhook-fields.ts';
import { withoutNulls } from './without-nulls.ts';

export interface ResolveBodyOptions<Body, Input> {
  schema: z.ZodObject & z.ZodType<Body>;
  options: RequestPolicy;
  /** Expected values, for error messages, of fields whose limits depend on the model. */
  expected?: Readonly<Record<string, string>>;
  /** Our field names by the names that other systems have for them; error messages suggest them. */
  compatNames?: Readonly<Record<string, string>>;
  /** Returns problems that the schema cannot detect, such as capabilities that the model lacks. */
  problemsOf: (body: Body) => FieldProblem[];
  /** Returns the input with every default filled in, for a body without problems. */
  inputOf: (body: Body) => Input;
}

/** Validates a body and resolves it to the fields of its envelope; common to all kinds. */
export function resolveBody<Body extends RequestFields, Input>(
  body: unknown,
  { schema, options, expected, compatNames = {}, problemsOf, inputOf }: ResolveBodyOptions<Body, Input>,
): ResolveResult<Input> {
  const { timeoutS, webhooks } = options;
  const seconds = `a number of seconds from 0.1 to ${timeoutS.max}`;
  const { success, data: fields, error } = schema.safeParse(withoutNulls(schema, body));
  if (!success) {
    const known = Object.keys(schema.shape);
    const all = { timeout_s: seconds, start_timeout_s: seconds, ...expected };
    return { status: 'invalid', problems: fieldProblems(error.issues, { body, known, compatNames, expected: all }) };
  }
  const excessive = (['timeout_s', 'start_timeout_s'] as const).filter((field) => (fields[field] ?? 0) > timeoutS.max);
  const hasWebhook = fields.webhook_url !== undefined || fields.webhook_events !== undefined;
  const problems = [
    ...problemsOf(fields),
    ...excessive.map((field) => invalidValue(field, fields[field], seconds)),
    ...(hasWebhook ? webhookProblems(fields, webhooks) : []),
  ];
  if (problems.length > 0) return { status: 'invalid', problems };
  const timeout = fields.timeout_s ?? timeoutS.default;
  const request = {
    input: inputOf(fields),
    priority: fields.priority ?? defaultPriority,
    timeoutS: timeout,
    startTimeoutS: Math.min(fields.start_timeout_s ?? timeout, timeout),
    webhook: hasWebhook ? resolveWebhook(fields) : undefined,
  };
  return { status: 'resolved', request };
}
