import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DarkroomError } from '@darkroom/core';
import { z } from 'zod';
import { parsePythonJson } from './python-json.ts';

/** A number of things, or of pixels. */
export const count = z.number().int().min(1);
/** A field that must be null or absent: what it turns on is not implemented, and leaving it out would be another picture. */
export const unsupported = z.null({ error: 'is not supported, expected null' }).optional();

/** A file of a model's directory that is missing or not what it should be. The message names the file and the field. */
export function modelFileError(file: string, problem: string, cause?: unknown): DarkroomError {
  return new DarkroomError('model_unsupported', 'diffusion.read-model-directory', `${file}: ${problem}`, cause);
}

/** A field of a file that does not fit what other files say, which `expected` tells in words. */
export function misfitError(file: string, field: string, given: number, expected: string): DarkroomError {
  return modelFileError(file, `${field}: is ${given}, expected ${expected}`);
}

/** Reads a text file, given relative to the directory. @throws DarkroomError `model_unsupported` if it cannot be read. */
export async function readModelText(directory: string, file: string): Promise<string> {
  try {
    return await readFile(join(directory, file), 'utf8');
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw modelFileError(file, isMissing ? 'is missing' : 'could not be read', error);
  }
}

/** Reads a JSON file as Python writes it (with NaN and Infinity). @throws DarkroomError as {@link readModelText}. */
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

/** Checks a parsed file. @throws DarkroomError `model_unsupported` naming the first field that is wrong. */
export function checkModelJson<Output>(file: string, json: unknown, schema: z.ZodType<Output>): Output {
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const field = issue.path.join('.');
  if (field === '') throw modelFileError(file, issue.message, result.error);
  throw modelFileError(file, `${field}: ${issue.message}${shownValue(json, issue.path)}`, result.error);
}

/** What stands there, where that is short. */
function shownValue(json: unknown, path: readonly PropertyKey[]): string {
  let value = json;
  for (const key of path) value = (value as Record<PropertyKey, unknown> | undefined)?.[key];
  return value === undefined || (typeof value === 'object' && value !== null) ? '' : `; it is ${JSON.stringify(value)}`;
}

/** What a reader of a file gives, or undefined where there is no such file. */
export async function unlessMissing<Value>(reading: Promise<Value>): Promise<Value | undefined> {
  try {
    return await reading;
  } catch (error) {
    const { cause } = error as DarkroomError;
    if ((cause as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') return undefined;
    throw error;
  }
}
