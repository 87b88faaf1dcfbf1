import { type FieldProblem, fieldProblems, invalidValue } from '@darkroom/core';
import type { z } from 'zod';
import type { ResolveResult } from './kind.ts';
import { defaultPriority, type RequestFields, type RequestOptions } from './request-fields.ts';
import { resolveWebhook, webhookProblems } from './webhook-fields.ts';

export interface ResolveBodyOptions<Body, Input> {
  schema: z.ZodObject & z.ZodType<Body>;
  options: RequestOptions;
  /** What fields take whose limits the schema cannot know. */
  expected?: Readonly<Record<string, string>>;
  /** Our fields by what other systems call them. */
  foreignNames?: Readonly<Record<string, string>>;
  /** What the schema cannot see: above all what the model cannot do. */
  problemsOf: (body: Body) => FieldProblem[];
  /** Every default filled in, for a body without problems. */
  inputOf: (body: Body) => Input;
}

/** The way from a body to what its envelope carries, the same for every kind. */
export function resolveBody<Body extends RequestFields, Input>(
  body: unknown,
  { schema, options, expected, foreignNames = {}, problemsOf, inputOf }: ResolveBodyOptions<Body, Input>,
): ResolveResult<Input> {
  const { timeoutS, webhooks } = options;
  const seconds = `a number of seconds from 0.1 to ${timeoutS.max}`;
  const { success, data: fields, error } = schema.safeParse(body);
  if (!success) {
    const known = Object.keys(schema.shape);
    const all = { timeout_s: seconds, start_timeout_s: seconds, ...expected };
    return { status: 'invalid', problems: fieldProblems(error.issues, { body, known, foreignNames, expected: all }) };
  }
  const late = (['timeout_s', 'start_timeout_s'] as const).filter((field) => (fields[field] ?? 0) > timeoutS.max);
  const problems = [
    ...problemsOf(fields),
    ...late.map((field) => invalidValue(field, fields[field], seconds)),
    ...webhookProblems(fields, webhooks),
  ];
  if (problems.length > 0) return { status: 'invalid', problems };
  const timeout = fields.timeout_s ?? timeoutS.default;
  const request = {
    input: inputOf(fields),
    priority: fields.priority ?? defaultPriority,
    timeoutS: timeout,
    startTimeoutS: Math.min(fields.start_timeout_s ?? timeout, timeout),
    webhook: resolveWebhook(fields, webhooks.progressIntervalMs),
  };
  return { status: 'resolved', request };
}
