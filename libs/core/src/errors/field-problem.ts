import type { z } from 'zod';
import { closestName } from './closest-name.ts';

/** A problem with a field of a request, in words for the client. */
export interface FieldProblem {
  /** Field, `a.b` if nested; undefined for the whole body. */
  field: string | undefined;
  code: 'invalid_value' | 'missing_field' | 'unknown_field' | 'invalid_body' | 'context_length_exceeded';
  message: string;
}

/** Max length of a value in a message, in UTF-16 code units. */
const shownLength = 60;
/** Max unknown fields in a reply: a hostile body may have any number. */
const maxUnknownFields = 5;
/** Max problems listed for one body; the rest is only counted. */
export const maxListedProblems = 20;
/** Max length of a field's path, in UTF-16 code units: it may contain names that the client chose. */
const maxPathLength = 200;
/** Names that are shown without quotes. */
const plainName = /^[\w.-]+$/;

/** Formats a value for a message, shortened. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return cutText(JSON.stringify(value), value);
  if (typeof value !== 'object' || value === null) return String(value);
  try {
    return cutText(JSON.stringify(value));
  } catch {
    // JSON.stringify overflowed the stack.
    return Array.isArray(value) ? 'a deeply nested array' : 'a deeply nested object';
  }
}

/** Shortens a text for a message, never within a character, and appends the length of `whole`. */
export function cutText(text: string, whole = text): string {
  if (text.length <= shownLength) return text;
  const shown = text.slice(0, shownLength).replace(/[\uD800-\uDBFF]$/, '');
  // In code points, as JSON Schema's `maxLength`.
  const { length } = whole.replaceAll(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g, '_');
  return `${shown}… (${length} characters)`;
}

/** Describes a value that is invalid or missing. */
export function invalidValue(field: string, value: unknown, expected: string): FieldProblem {
  if (value === undefined)
    return { field, code: 'missing_field', message: `${field} is missing, expected ${expected}` };
  return { field, code: 'invalid_value', message: `${field} is ${describeValue(value)}, expected ${expected}` };
}

function unknownField(name: string, { known, compatNames = {} }: FieldProblemsOptions): FieldProblem {
  const closest = closestName(name, known, compatNames);
  const hint = closest === undefined ? `expected one of ${known.join(', ')}` : `did you mean ${closest}?`;
  const shown = plainName.test(name) ? cutText(name) : describeValue(name);
  return { field: cutText(name), code: 'unknown_field', message: `${shown} is not a field, ${hint}` };
}

function unknownFields(names: readonly string[], options: FieldProblemsOptions): FieldProblem[] {
  const problems = names.slice(0, maxUnknownFields).map((name) => unknownField(name, options));
  const rest = names.length - problems.length;
  if (rest === 0) return problems;
  const message = `${rest} more ${rest === 1 ? 'name is not a field' : 'names are not fields'} either`;
  return [...problems, { field: undefined, code: 'unknown_field', message }];
}

export interface FieldProblemsOptions {
  /** The parsed body, for the values in messages. */
  body: unknown;
  /** All valid fields, for hints on misspelled ones. */
  known: readonly string[];
  /** Maps field names of other systems to ours, for the same hints. */
  compatNames?: Readonly<Record<string, string>>;
  /** Expectations per field that are more precise than the schema's. */
  expected?: Readonly<Record<string, string>>;
}

/**
 * Converts Zod issues to one problem per field. Our schemas state the expectation as the error text of each check (`a
 * whole number from 1 to 10`); this adds the field and the value.
 */
export function fieldProblems(issues: readonly z.core.$ZodIssue[], options: FieldProblemsOptions): FieldProblem[] {
  const { body, expected = {} } = options;
  const problems = new Map<string, FieldProblem>();
  const add = (problem: FieldProblem): void => {
    const key = problem.field ?? '';
    if (!problems.has(key)) problems.set(key, problem);
  };
  const all = issues.flatMap(deepest);
  let count = 0;
  for (const issue of all) {
    if (problems.size >= maxListedProblems) break;
    count += 1;
    const path = issue.path.join('.');
    const field = path.length > maxPathLength ? cutText(path) : path;
    if (issue.code === 'unrecognized_keys' && field === '') unknownFields(issue.keys, options).forEach(add);
    else if (field === '') {
      const message = `the body is ${describeValue(body)}, expected a JSON object`;
      add({ field: undefined, code: 'invalid_body', message });
    } else add(invalidValue(field, valueAt(body, issue.path), expected[field] ?? issue.message));
  }
  const rest = all.length - count;
  if (rest === 0) return [...problems.values()];
  const message = `${rest} more ${rest === 1 ? 'value is' : 'values are'} not as expected`;
  return [...problems.values(), { field: undefined, code: 'invalid_value', message }];
}

/** Replaces the issue of a union by those of the option whose type the value has, if it is the only one. */
function deepest(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const inside = issue.errors.filter((errors) => errors.every(({ path }) => path.length > 0));
  if (inside.length !== 1) return [issue];
  return inside[0]!.flatMap((inner) => deepest({ ...inner, path: [...issue.path, ...inner.path] }));
}

function valueAt(body: unknown, path: readonly PropertyKey[]): unknown {
  let value = body;
  for (const key of path)
    value = typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined;
  return value;
}
