/** Bodies with files and fields (`multipart/form-data`). */
import { once } from 'node:events';
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy';
import type { FieldProblem } from '@darkroom/core';
import type { FileMemory, FileShare } from './file-memory.ts';
import { GrowingBuffer } from './growing-buffer.ts';
import { Uploads } from './uploads.ts';

import type { ApiCall } from '../http/api-env.ts';
import { ApiError, invalidFields } from '../http/api-error.ts';
import { withMinRate } from './min-rate.ts';
import { bodyTooLarge, invalidBody } from './read-json-body.ts';

export interface FormLimits {
  /** Form fields that may be files. */
  fileNames: readonly string[];
  /** Limit of all files together. */
  maxFileBytes: number;
  /** Limit of all fields together, names included. */
  maxFieldBytes: number;
  /** Memory budget that all uploads share. */
  memory: FileMemory;
}

export interface FormBody {
  /** Values as text: forms have no other types. */
  fields: Readonly<Record<string, string>>;
  uploads: Uploads;
}

/** Time for a form to arrive, without waits for memory. */
const uploadMs = 60_000;
const maxFields = 64;
const formExpected = 'expected the parts of a form';

/**
 * Reads a form as it arrives, each file into one buffer; reads from the connection only once memory is reserved.
 * Throws 413, 400, 408 if the form arrives too slowly, or 503 if no memory becomes free in time.
 */
export async function readFormBody(c: ApiCall, limits: FormLimits): Promise<FormBody> {
  const { maxFileBytes, maxFieldBytes } = limits;
  const maxBytes = maxFileBytes + maxFieldBytes;
  const maxLength = Number(c.req.header('content-length') ?? maxBytes);
  if (maxLength > maxBytes) throw bodyTooLarge(maxBytes);
  const { signal } = c.req.raw;
  const memory = limits.memory.open(maxLength, { owner: c.get('apiKey').name, signal });
  try {
    const parts = collectParts(c, limits, maxLength);
    await feedParser(c.req.raw, parts, { maxLength, memory });
    const uploads = new Uploads(parts.files, () => memory.free());
    memory.complete(uploads.byteLength);
    return { fields: Object.fromEntries(parts.fields), uploads };
  } catch (error) {
    memory.free();
    throw error;
  }
}

/** Parser of a form and the parts it has found. */
interface FormParts {
  parser: BusboyInstance;
  fields: Map<string, string>;
  files: Map<string, Uint8Array>;
  /** Resolves at the end of the form; rejects with the first problem. */
  finished: Promise<void>;
}

async function feedParser(
  { body, signal }: Request,
  { parser, finished }: FormParts,
  { maxLength, memory }: { maxLength: number; memory: FileShare },
): Promise<void> {
  const reader = (body ?? new Blob([]).stream()).getReader();
  const read = withMinRate(reader, signal, uploadMs);
  const feed = async (): Promise<void> => {
    let size = 0;
    for (let chunk = await read(); chunk !== undefined; chunk = await read()) {
      size += chunk.byteLength;
      if (size > maxLength) throw bodyTooLarge(maxLength);
      await memory.grow(chunk.byteLength);
      if (!parser.write(chunk)) await once(parser, 'drain');
    }
    parser.end();
  };
  try {
    await Promise.race([feed(), finished]);
    await finished;
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw endedEarly(error);
  } finally {
    reader.cancel().catch(() => {});
    parser.destroy();
  }
}

function endedEarly(cause: unknown): ApiError {
  return invalidBody(`the body ended early, ${formExpected}`, cause);
}

function collectParts(c: ApiCall, limits: FormLimits, maxLength: number): FormParts {
  const { maxFileBytes, maxFieldBytes } = limits;
  const fields = new Map<string, string>();
  const files = new Map<string, Uint8Array>();
  let fieldBytes = 0;
  const failure = new AbortController();
  const fail = (error: ApiError): void => failure.abort(error);
  const parser = openParser(c, {
    fields: maxFields,
    fieldSize: maxFieldBytes,
    fileSize: maxFileBytes,
    parts: maxFields + limits.fileNames.length,
    headerPairs: 32,
  });
  const { signal } = failure;
  const finished = new Promise<void>((resolve, reject) => {
    parser.on('finish', resolve);
    signal.addEventListener('abort', () => reject(signal.reason as ApiError));
  });
  // It may reject before it is awaited.
  finished.catch(() => {});
  const isTaken = (name: string): boolean => {
    const isTwice = fields.has(name) || files.has(name);
    if (isTwice) fail(invalidPart(name, `${name} appears more than once, expected one`));
    return isTwice;
  };
  parser.on('field', (given, value, _isNameCut, isCut) => {
    const name = nameOf(given);
    if (isTaken(name)) return;
    fieldBytes += Buffer.byteLength(name) + Buffer.byteLength(value);
    if (isCut || fieldBytes > maxFieldBytes) fail(bodyTooLarge(maxFieldBytes));
    else fields.set(name, value);
  });
  parser.on('file', (given, stream) => {
    const name = nameOf(given);
    const isKnown = limits.fileNames.includes(name);
    if (!isKnown)
      fail(invalidPart(name, `${name} is a file, expected only files named ${limits.fileNames.join(' and ')}`));
    if (!isKnown || isTaken(name)) return void stream.on('error', () => {}).resume();
    files.set(name, new Uint8Array());
    stream.once('limit', () => fail(bodyTooLarge(maxFileBytes)));
    collectFile(stream, Math.min(maxLength, maxFileBytes), (bytes) => files.set(name, bytes));
  });
  failOnFaults(parser, fail);
  return { parser, fields, files, finished };
}

function failOnFaults(parser: BusboyInstance, fail: (error: ApiError) => void): void {
  for (const limit of ['fieldsLimit', 'partsLimit'] as const)
    parser.on(limit, () => fail(invalidBody(`the body has more than ${maxFields} parts, ${formExpected}`)));
  parser.on('error', (error) => fail(invalidBody(`the body is not a complete form, ${formExpected}`, error)));
}

function openParser(c: ApiCall, limits: Record<string, number>): BusboyInstance {
  try {
    return new Busboy({
      headers: { 'content-type': c.req.header('content-type') ?? '' },
      limits,
      isPartAFile: (_name, type, fileName) =>
        fileName !== undefined || /^(?:image\/|application\/octet-stream)/.test(type ?? ''),
    });
  } catch (error) {
    throw invalidBody(`Content-Type has no boundary, ${formExpected}`, error);
  }
}

function collectFile(stream: BusboyFileStream, maxLength: number, onFile: (bytes: Uint8Array) => void): void {
  const bytes = new GrowingBuffer(maxLength);
  stream.on('data', (chunk: Buffer) => bytes.append(chunk));
  // The parser reports the error, too.
  stream.on('error', () => {});
  // Prepended, so that it runs before the parser's own listener, which may emit `finish`.
  stream.prependOnceListener('end', () => onFile(bytes.written()));
}

/** Returns the name without `[]`: some clients append it to fields that may repeat (`image[]`). */
function nameOf(name: string | undefined): string {
  return (name ?? '').replace(/\[\]$/, '');
}

function invalidPart(field: string, message: string): ApiError {
  return invalidFields([{ field, code: 'invalid_value', message } satisfies FieldProblem]);
}
