import { describeValue, type FieldProblem, invalidValue } from '@darkroom/core';

const expected = 'valid UTF-8 without unpaired surrogates';
/** JSON can contain an unpaired surrogate as an escape; UTF-8 cannot encode one. */
const escapedSurrogate = /\\u[dD][89a-fA-F]/;
const unpaired = /\p{Surrogate}/u;

/** Returns the first string of a body with an unpaired surrogate: it is not valid UTF-8 and cannot be stored. */
export function findUnpairedSurrogate(json: string, body: unknown): FieldProblem | undefined {
  if (typeof body !== 'object' || !escapedSurrogate.test(json)) return undefined;
  // No recursion: deep bodies would overflow the stack.
  const left: { field: string; value: unknown }[] = [{ field: '', value: body }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { field, value } = next;
    if (typeof value === 'string' && unpaired.test(value)) return invalidValue(field, value, expected);
    if (typeof value !== 'object' || value === null) continue;
    const inside: typeof left = [];
    for (const [name, inner] of Object.entries(value)) {
      if (unpaired.test(name)) return invalidName(field, name);
      inside.push({ field: field === '' ? name : `${field}.${name}`, value: inner });
    }
    for (const item of inside.toReversed()) left.push(item);
  }
  return undefined;
}

function invalidName(field: string, name: string): FieldProblem {
  const message = `${field === '' ? 'the body' : field} has the name ${describeValue(name)}, expected ${expected}`;
  return { field: field === '' ? undefined : field, code: 'invalid_value', message };
}
