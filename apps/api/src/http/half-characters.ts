import { describeValue, type FieldProblem, invalidValue } from '@darkroom/core';

const expected = 'text that can be UTF-8, without half a surrogate pair';
/** JSON can hold half a surrogate pair, in an escape; no UTF-8 can. */
const escapedSurrogate = /\\u[dD][89a-fA-F]/;
const half = /\p{Surrogate}/u;

/** The first text in a body that no UTF-8 can be, whatever field it is in: nothing behind the door could store or read it. */
export function halfCharacterIn(json: string, body: unknown): FieldProblem | undefined {
  if (typeof body !== 'object' || !escapedSurrogate.test(json)) return undefined;
  // No recursion: a body may be nested as deeply as it is long.
  const left: { field: string; value: unknown }[] = [{ field: '', value: body }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { field, value } = next;
    if (typeof value === 'string' && half.test(value)) return invalidValue(field, value, expected);
    if (typeof value !== 'object' || value === null) continue;
    const inside: typeof left = [];
    for (const [name, inner] of Object.entries(value)) {
      if (half.test(name)) return halfName(field, name);
      inside.push({ field: field === '' ? name : `${field}.${name}`, value: inner });
    }
    for (const item of inside.toReversed()) left.push(item);
  }
  return undefined;
}

function halfName(field: string, name: string): FieldProblem {
  const message = `${field === '' ? 'the body' : field} has the name ${describeValue(name)}, expected ${expected}`;
  return { field: field === '' ? undefined : field, code: 'invalid_value', message };
}
