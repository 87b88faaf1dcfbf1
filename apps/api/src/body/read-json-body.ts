import { describeValue } from '@darkroom/core';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import { parseJson } from './parse-json.ts';
import { readLargeBody } from './read-large-body.ts';

/** Larger bodies are read and parsed in turns per owner: one blocks the event loop for tens of milliseconds. */
const largeBytes = 32_768;

/**
 * Reads and parses a JSON body of at most `maxBytes`. Throws 415, 413 or 400.
 *
 * @param types content types that the route accepts, for the error message.
 */
export async function readJsonBody(c: ApiCall, maxBytes: number, types?: string): Promise<unknown> {
  const type = c.req.header('content-type') ?? '';
  if (type.replace(/;.*$/su, '').trim().toLowerCase() !== 'application/json') throw wrongType(type, types);
  const encoding = c.req.header('content-encoding') ?? 'identity';
  if (encoding.toLowerCase() !== 'identity')
    throw unsupported(`Content-Encoding is ${describeValue(encoding)}, expected none`);
  const length = c.req.header('content-length');
  if (Number(length ?? 0) > maxBytes) throw bodyTooLarge(maxBytes);
  try {
    // Node's server enforces Content-Length, and `arrayBuffer()` is faster than reading a web stream.
    const isSmall = c.env?.outgoing !== undefined && Number(length ?? Infinity) <= largeBytes;
    if (isSmall) return parse(new Uint8Array(await c.req.raw.arrayBuffer()));
    if (c.req.raw.body === null) return parse(new Uint8Array());
    return await readLargeBody(c, { maxBytes, tooLarge: () => bodyTooLarge(maxBytes), parse });
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw invalidBody('the body ended early, expected a JSON object', error);
  }
}

function parse(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw invalidBody('the body is not UTF-8, expected a JSON object', error);
  }
  if (text.trim() === '') throw invalidBody('the body is empty, expected a JSON object');
  try {
    return parseJson(text, bytes);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw invalidBody(`the body is not JSON, expected a JSON object: ${error.message}`, error);
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
