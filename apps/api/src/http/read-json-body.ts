import { describeValue } from '@darkroom/core';
import type { ApiCall } from './api-env.ts';
import { ApiError, invalidFields } from './api-error.ts';
import { halfCharacterIn } from './half-characters.ts';

/** Far more than schemas of answers have. */
const mostLevels = 200;

/** A request's JSON. Throws 415, 413 or 400; never takes more than `maxBytes` into memory, whatever the headers say. `types`: what the route takes. */
export async function readJsonBody(c: ApiCall, maxBytes: number, types?: string): Promise<unknown> {
  const type = c.req.header('content-type') ?? '';
  if (type.split(';')[0]!.trim().toLowerCase() !== 'application/json') throw wrongType(type, types);
  const encoding = c.req.header('content-encoding') ?? 'identity';
  if (encoding.toLowerCase() !== 'identity')
    throw unsupported(`Content-Encoding is ${describeValue(encoding)}, expected none`);
  const length = c.req.header('content-length');
  if (Number(length ?? 0) > maxBytes) throw bodyTooLarge(maxBytes);
  try {
    // No more than the length that was said comes through a server, and a stream of the web takes longer than all the rest.
    const isBounded = length !== undefined && c.env?.outgoing !== undefined;
    return parse(isBounded ? new Uint8Array(await c.req.raw.arrayBuffer()) : await readBytes(c.req.raw.body, maxBytes));
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw invalidBody('the body broke off, expected a JSON object', error);
  }
}

async function readBytes(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<Uint8Array> {
  if (body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    // Leaving the loop cancels the stream.
    if (size > maxBytes) throw bodyTooLarge(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parse(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw invalidBody('the body is not UTF-8, expected a JSON object', error);
  }
  if (text.trim() === '') throw invalidBody('the body is empty, expected a JSON object');
  return checkedJson(text, parseJson(text));
}

/** What JSON may hold here: throws 400 for half a character, and for what is nested too deep. `body`: what `text` says. */
export function checkedJson(text: string, body: unknown): unknown {
  // Before anything goes down into it: what calls itself for each level would run out of stack.
  if (isDeeperThan(mostLevels, body))
    throw invalidBody(`the body is nested more than ${mostLevels} levels deep, expected a JSON object of fields`);
  const problem = halfCharacterIn(text, body);
  if (problem !== undefined) throw invalidFields([problem]);
  return body;
}

function isDeeperThan(levels: number, body: unknown): boolean {
  let inside: unknown[] = [body];
  for (let level = 0; level <= levels && inside.length > 0; level++)
    inside = inside.flatMap((value) => (typeof value === 'object' && value !== null ? Object.values(value) : []));
  return inside.length > 0;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : '';
    throw invalidBody(`the body is not JSON, expected a JSON object: ${reason}`, error);
  }
}

export function invalidBody(message: string, cause?: unknown): ApiError {
  return new ApiError(400, 'invalid_body', message, { cause });
}

export function wrongType(type: string, expected = 'application/json'): ApiError {
  return unsupported(`Content-Type is ${type === '' ? 'missing' : describeValue(type)}, expected ${expected}`);
}

function unsupported(message: string): ApiError {
  return new ApiError(415, 'unsupported_media_type', message);
}

export function bodyTooLarge(maxBytes: number): ApiError {
  return new ApiError(413, 'body_too_large', `the body has more than ${maxBytes} bytes`);
}
