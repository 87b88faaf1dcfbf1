import type { z } from 'zod';
import { closestName } from './closest-name.ts';

/** One thing that is wrong with a request, in words for whoever sent it. */
export interface FieldProblem {
  /** The field, `a.b` when nested; undefined for the request as a whole. */
  field: string | undefined;
  code: 'invalid_value' | 'missing_field' | 'unknown_field' | 'invalid_body';
  message: string;
}

/** UTF-16 units of a value that go into a message. */
const shownLength = 60;
/** A body may be full of names that are not fields; an answer is not. */
const maxUnknownFields = 5;
/** Names that stand in a message as they are; others are quoted. */
const plainName = /^[\w.-]+$/;

/** A value as it came, short enough for a message. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return cutText(JSON.stringify(value), value);
  if (typeof value !== 'object' || value === null) return String(value);
  try {
    return cutText(JSON.stringify(value));
  } catch {
    // Writing it would overflow the stack.
    return Array.isArray(value) ? 'a deeply nested array' : 'a deeply nested object';
  }
}

/** What is longer than a message should be is cut, never inside of a character, and the length of `whole` is said. */
export function cutText(text: string, whole = text): string {
  if (text.length <= shownLength) return text;
  const shown = text.slice(0, shownLength).replace(/[\uD800-\uDBFF]$/, '');
  // Code points, which is what JSON Schema's `maxLength` counts.
  const { length } = whole.replaceAll(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g, '_');
  return `${shown}… (${length} characters)`;
}

/** A value that is not what was expected, or missing where there must be one. */
export function invalidValue(field: string, value: unknown, expected: string): FieldProblem {
  if (value === undefined)
    return { field, code: 'missing_field', message: `${field} is missing, expected ${expected}` };
  return { field, code: 'invalid_value', message: `${field} is ${describeValue(value)}, expected ${expected}` };
}

function unknownField(name: string, { known, foreignNames = {} }: FieldProblemsOptions): FieldProblem {
  const closest = closestName(name, known, foreignNames);
  const hint = closest === undefined ? `expected one of ${known.join(', ')}` : `did you mean ${closest}?`;
  const shown = plainName.test(name) ? cutText(name) : describeValue(name);
  return { field: cutText(name), code: 'unknown_field', message: `${shown} is not a field, ${hint}` };
}

function unknownFields(names: readonly string[], options: FieldProblemsOptions): FieldProblem[] {
  const problems = names.slice(0, maxUnknownFields).map((name) => unknownField(name, options));
  const more = names.length - problems.length;
  if (more === 0) return problems;
  const message = `${more} more ${more === 1 ? 'name is not a field' : 'names are not fields'} either`;
  return [...problems, { field: undefined, code: 'unknown_field', message }];
}

export interface FieldProblemsOptions {
  /** What was parsed, to say which value came. */
  body: unknown;
  /** All fields there are, for the hint at a misspelled one. */
  known: readonly string[];
  /** Our fields by what other systems call them, for the same hint. */
  foreignNames?: Readonly<Record<string, string>>;
  /** What a field takes, where somebody knows better than the schema. */
  expected?: Readonly<Record<string, string>>;
}

/**
 * Zod's issues as one problem per field. Our schemas carry the expectation as the error text of each check
 * (`a whole number from 1 to 10`); the field and the value are added here.
 */
export function fieldProblems(issues: readonly z.core.$ZodIssue[], options: FieldProblemsOptions): FieldProblem[] {
  const { body, expected = {} } = options;
  const problems = new Map<string, FieldProblem>();
  const add = (problem: FieldProblem): void => {
    const key = problem.field ?? '';
    if (!problems.has(key)) problems.set(key, problem);
  };
  for (const issue of issues) {
    const field = issue.path.join('.');
    if (issue.code === 'unrecognized_keys' && field === '') unknownFields(issue.keys, options).forEach(add);
    else if (field === '') {
      const message = `the body is ${describeValue(body)}, expected a JSON object`;
      add({ field: undefined, code: 'invalid_body', message });
    } else add(invalidValue(field, valueAt(body, issue.path), expected[field] ?? issue.message));
  }
  return [...problems.values()];
}

function valueAt(body: unknown, path: readonly PropertyKey[]): unknown {
  let value = body;
  for (const key of path)
    value = typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined;
  return value;
}
