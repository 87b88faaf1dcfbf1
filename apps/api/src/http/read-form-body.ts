/** Bodies that bring files beside their fields (`multipart/form-data`). */
import { once } from 'node:events';
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy';
import { type FieldProblem, within } from '@darkroom/core';
import { Uploads } from '../pictures/uploads.ts';
import type { WaitingLine } from '../pictures/waiting-line.ts';
import type { ApiCall } from './api-env.ts';
import { ApiError, invalidFields } from './api-error.ts';
import { bodyTooLarge, invalidBody } from './read-json-body.ts';

export interface FormLimits {
  /** Names that files may have. */
  fileNames: readonly string[];
  /** Of all files together. */
  maxFileBytes: number;
  /** Of each field. */
  maxFieldBytes: number;
  /** Bytes in memory of all files. */
  room: WaitingLine;
}

export interface FormBody {
  /** As text, which is all that a form has. */
  fields: Readonly<Record<string, string>>;
  uploads: Uploads;
}

/** From the moment on at which there is room for it. */
const uploadMs = 60_000;
const mostFields = 64;
const formExpected = 'expected the parts of a form';

export function isForm(c: ApiCall): boolean {
  return /^multipart\/form-data\s*(?:;|$)/i.test(c.req.header('content-type') ?? '');
}

/**
 * Reads it as it comes: each file goes into one buffer, and nothing is taken from the connection before there is room for all of it. What
 * it said to be and was not is let go of then. Throws 413, 400, 408 for one that takes too long, or 503 where there was no room for too long.
 */
export async function readFormBody(c: ApiCall, limits: FormLimits): Promise<FormBody> {
  const { maxFileBytes, maxFieldBytes, room } = limits;
  const maxBytes = maxFileBytes + maxFieldBytes;
  const most = Number(c.req.header('content-length') ?? maxBytes);
  if (most > maxBytes) throw bodyTooLarge(maxBytes);
  const letGo = await room.take(most, { owner: c.get('apiKey').name, signal: c.req.raw.signal });
  try {
    const parts = collectParts(c, limits, most);
    await within(uploadMs, c.req.raw.signal, (signal) => pour(c.req.raw.body, parts, { signal, most }));
    const uploads = new Uploads(parts.files, letGo);
    letGo(uploads.byteLength);
    return { fields: Object.fromEntries(parts.fields), uploads };
  } catch (error) {
    letGo();
    throw error;
  }
}

/** What comes of a form. */
interface FormParts {
  parser: BusboyInstance;
  fields: Map<string, string>;
  files: Map<string, Uint8Array>;
  fail: (error: ApiError) => void;
  /** Rejects with what it failed with. */
  finished: Promise<void>;
}

async function pour(
  body: ReadableStream<Uint8Array> | null,
  { parser, fail, finished }: FormParts,
  { signal, most }: { signal: AbortSignal; most: number },
): Promise<void> {
  const reader = (body ?? new Blob([]).stream()).getReader();
  const onAbort = (): void =>
    fail((signal.reason as Error).name === 'TimeoutError' ? uploadTooSlow() : brokenOff(signal.reason));
  signal.addEventListener('abort', onAbort);
  const feed = async (): Promise<void> => {
    let size = 0;
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      size += next.value.byteLength;
      if (size > most) throw bodyTooLarge(most);
      if (!parser.write(next.value)) await once(parser, 'drain');
    }
    parser.end();
  };
  try {
    await Promise.race([feed(), finished]);
    await finished;
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw brokenOff(error);
  } finally {
    signal.removeEventListener('abort', onAbort);
    reader.cancel().catch(() => {});
    parser.destroy();
  }
}

function brokenOff(cause: unknown): ApiError {
  return invalidBody(`the body broke off, ${formExpected}`, cause);
}

export function uploadTooSlow(): ApiError {
  return new ApiError(408, 'upload_timeout', `the body did not come within ${uploadMs / 1000} s`);
}

function collectParts(c: ApiCall, limits: FormLimits, most: number): FormParts {
  const { maxFileBytes, maxFieldBytes } = limits;
  const fields = new Map<string, string>();
  const files = new Map<string, Uint8Array>();
  const failure = new AbortController();
  const fail = (error: ApiError): void => failure.abort(error);
  const parser = openParser(c, {
    fields: mostFields,
    fieldSize: maxFieldBytes,
    fileSize: maxFileBytes,
    parts: mostFields + limits.fileNames.length,
    headerPairs: 32,
  });
  const { signal } = failure;
  const finished = new Promise<void>((resolve, reject) => {
    parser.on('finish', resolve);
    signal.addEventListener('abort', () => reject(signal.reason as ApiError));
  });
  // It may fail while nobody waits for it.
  finished.catch(() => {});
  const isTaken = (name: string): boolean => {
    const isTwice = fields.has(name) || files.has(name);
    if (isTwice) fail(wrongPart(name, `${name} comes more than once, expected one`));
    return isTwice;
  };
  parser.on('field', (given, value, _isNameCut, isCut) => {
    const name = nameOf(given);
    if (isTaken(name)) return;
    if (isCut) fail(bodyTooLarge(maxFieldBytes));
    fields.set(name, value);
  });
  parser.on('file', (given, stream) => {
    const name = nameOf(given);
    const isKnown = limits.fileNames.includes(name);
    if (!isKnown)
      fail(wrongPart(name, `${name} is a file, expected files called ${limits.fileNames.join(' and ')} only`));
    if (!isKnown || isTaken(name)) return void stream.on('error', () => {}).resume();
    files.set(name, new Uint8Array());
    stream.once('limit', () => fail(bodyTooLarge(maxFileBytes)));
    keepFile(stream, Math.min(most, maxFileBytes), (bytes) => files.set(name, bytes));
  });
  for (const limit of ['fieldsLimit', 'partsLimit'] as const)
    parser.on(limit, () => fail(invalidBody(`the body has more than ${mostFields} parts, ${formExpected}`)));
  parser.on('error', (error) => fail(invalidBody(`the body is no whole form, ${formExpected}`, error)));
  return { parser, fields, files, fail, finished };
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

/** Into one buffer: a list of pieces that is joined would be in memory twice. What of it is not written to takes no memory. */
function keepFile(stream: BusboyFileStream, most: number, keep: (bytes: Uint8Array) => void): void {
  const bytes = Buffer.allocUnsafeSlow(most);
  let length = 0;
  stream.on('data', (chunk: Buffer) => (length += chunk.copy(bytes, length)));
  // The parser says what went wrong.
  stream.on('error', () => {});
  // Before the parser hears of it, which may have finished then.
  stream.prependOnceListener('end', () => keep(bytes.subarray(0, length)));
}

/** Some clients name what may come more than once `image[]`. */
function nameOf(name: string | undefined): string {
  return (name ?? '').replace(/\[\]$/, '');
}

function wrongPart(field: string, message: string): ApiError {
  return invalidFields([{ field, code: 'invalid_value', message } satisfies FieldProblem]);
}
