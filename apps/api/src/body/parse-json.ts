/** Parses JSON of clients within limits. */
import { describeValue, type FieldProblem, invalidValue } from '@darkroom/core';
import { ApiError, invalidFields } from '../http/api-error.ts';

/** Far more than JSON schemas of structured outputs have. */
const maxDepth = 200;
/** A schema of 5,000 properties has about 15,000 members. */
const maxMembers = 20_000;
/** A prompt of token ids has one item per token. */
const maxItems = 200_000;

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

const validText = 'valid UTF-8 without unpaired surrogates';
/** JSON can contain an unpaired surrogate as an escape; UTF-8 cannot encode one. */
const escapedSurrogate = /\\u[dD][89a-fA-F]/;
const unpaired = /\p{Surrogate}/u;

/**
 * Parses JSON of a client. Throws SyntaxError for invalid JSON, and 400 for an unpaired surrogate or a shape that
 * `checkJsonShape` rejects.
 */
export function parseJson(text: string, bytes: Uint8Array = Buffer.from(text)): unknown {
  checkJsonShape(bytes);
  const body: unknown = JSON.parse(text);
  const problem = findUnpairedSurrogate(text, body);
  if (problem !== undefined) throw invalidFields([problem]);
  return body;
}

/**
 * Counts values and nesting of JSON text before it is parsed: parsing and validation cost time per value, and recursion
 * into deep values overflows the stack. Text that is not JSON may pass; the parser rejects it.
 *
 * @throws ApiError 400 for text nested more than 200 levels deep, or with more than 20,000 members of objects or
 * 200,000 items.
 */
export function checkJsonShape(bytes: Uint8Array): void {
  // The body itself is level 0.
  let depth = -1;
  let members = 0;
  let items = 0;
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]!) {
      case quote:
        at = endOfString(bytes, at);
        break;
      case comma:
        if (++items > maxItems) throw invalidShape(`has more than ${maxItems} items`);
        break;
      case colon:
        if (++members > maxMembers) throw invalidShape(`has more than ${maxMembers} members of objects`);
        break;
      case openBrace:
      case openBracket:
        if (++depth > maxDepth) throw invalidShape(`is nested more than ${maxDepth} levels deep`);
        break;
      case closeBrace:
      case closeBracket:
        depth--;
        break;
      default:
    }
  }
}

/** Returns the position of the quote that ends the string, or of the end of the text. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
}

function invalidShape(problem: string): ApiError {
  return new ApiError(400, 'invalid_body', `the body ${problem}, expected a JSON object of fields`);
}

/** Returns the first string of a body with an unpaired surrogate: it is not valid UTF-8 and cannot be stored. */
export function findUnpairedSurrogate(json: string, body: unknown): FieldProblem | undefined {
  if (typeof body !== 'object' || !escapedSurrogate.test(json)) return undefined;
  // No recursion: deep bodies would overflow the stack.
  const left: { field: string; value: unknown }[] = [{ field: '', value: body }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { field, value } = next;
    if (typeof value === 'string' && unpaired.test(value)) return invalidValue(field, value, validText);
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
  const message = `${field === '' ? 'the body' : field} has the name ${describeValue(name)}, expected ${validText}`;
  return { field: field === '' ? undefined : field, code: 'invalid_value', message };
}
