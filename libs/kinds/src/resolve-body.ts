import { type FieldProblem, fieldProblems } from '@darkroom/core';
import type { z } from 'zod';
import type { ResolveResult } from './kind.ts';
import {
  requestExpectations,
  type RequestFields,
  type RequestOptions,
  requestProblems,
  resolveRequestFields,
} from './request-fields.ts';

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
  const parsed = schema.safeParse(body);
  if (!parsed.success) {
    const known = Object.keys(schema.shape);
    const all = { ...requestExpectations(options), ...expected };
    return {
      status: 'invalid',
      problems: fieldProblems(parsed.error.issues, { body, known, foreignNames, expected: all }),
    };
  }
  const problems = [...problemsOf(parsed.data), ...requestProblems(parsed.data, options)];
  if (problems.length > 0) return { status: 'invalid', problems };
  return { status: 'resolved', request: resolveRequestFields(parsed.data, inputOf(parsed.data), options) };
}
