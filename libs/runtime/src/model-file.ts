/** Reads the files of a model's directory, of any kind of model. Nothing here loads ONNX Runtime. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DarkroomError, isModelId, itemAt } from '@darkroom/core';
import { z } from 'zod';
import { parsePythonJson } from './python-json.ts';

/** A positive number of items or pixels. */
export const positiveInteger = z.number().int().min(1);
/** A field that must be null or absent: the feature is not implemented, and ignoring it would change the image. */
export const unsupported = z.null({ error: 'is not supported, expected null' }).optional();

const op = 'runtime.read-model-file';

/** Creates the error for a missing or invalid file of a model's directory. The message names the file and the field. */
export function modelFileError(file: string, problem: string, cause?: unknown): DarkroomError {
  return new DarkroomError('model_unsupported', op, `${file}: ${problem}`, cause);
}

/** Creates the error for a field that contradicts other files; `expected` describes the right value. */
export function misfitError(file: string, field: string, given: number, expected: string): DarkroomError {
  return modelFileError(file, `${field}: is ${given}, expected ${expected}`);
}

/**
 * Reads a text file, given relative to the directory. @throws DarkroomError `model_unsupported` if it cannot be read.
 */
export async function readModelText(directory: string, file: string): Promise<string> {
  try {
    return await readFile(join(directory, file), 'utf8');
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw modelFileError(file, isMissing ? 'is missing' : 'could not be read', error);
  }
}

/** Reads a JSON file written by Python (with NaN and Infinity). @throws DarkroomError as {@link readModelText}. */
export async function readModelJson(directory: string, file: string): Promise<unknown> {
  const text = await readModelText(directory, file);
  try {
    return parsePythonJson(text);
  } catch (error) {
    throw modelFileError(file, 'is not JSON', error);
  }
}

/** Reads a JSON file and checks it. @throws DarkroomError as {@link checkModelJson} and {@link readModelText}. */
export async function readModelConfig<Output>(
  directory: string,
  file: string,
  schema: z.ZodType<Output>,
): Promise<Output> {
  return checkModelJson(file, await readModelJson(directory, file), schema);
}

/** Validates a parsed file. @throws DarkroomError `model_unsupported` naming the first invalid field. */
export function checkModelJson<Output>(file: string, json: unknown, schema: z.ZodType<Output>): Output {
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  const issue = itemAt(result.error.issues, 0);
  const field = issue.path.join('.');
  if (field === '') throw modelFileError(file, issue.message, result.error);
  throw modelFileError(file, `${field}: ${issue.message}${shownValue(json, issue.path)}`, result.error);
}

/** Returns the value at the path for an error message; '' for objects. */
function shownValue(json: unknown, path: readonly PropertyKey[]): string {
  let value = json;
  for (const key of path) value = (value as Record<PropertyKey, unknown> | undefined)?.[key];
  return value === undefined || (typeof value === 'object' && value !== null) ? '' : `; it is ${JSON.stringify(value)}`;
}

/** Returns the result of reading a file, or undefined if the file does not exist. */
export async function unlessMissing<Value>(reading: Promise<Value>): Promise<Value | undefined> {
  try {
    return await reading;
  } catch (error) {
    const { cause } = error as DarkroomError;
    if ((cause as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Adds the file to the beginning of a DarkroomError's message. */
export async function withFileName<Value>(file: string, attempt: Promise<Value>): Promise<Value> {
  try {
    return await attempt;
  } catch (error) {
    if (!DarkroomError.isInstance(error)) throw error;
    const { code, op, message, cause } = error;
    throw new DarkroomError(code, op, `${file}: ${message}`, cause);
  }
}

/** Returns the id. @throws DarkroomError `model_unsupported` if requests cannot name a model by it. */
export function checkModelId(id: string): string {
  if (isModelId(id)) return id;
  const problem = 'is not a model id, expected 1–64 characters of a–z, 0–9, ".", "_" and "-"';
  throw new DarkroomError('model_unsupported', op, `${JSON.stringify(id)} ${problem}`);
}
