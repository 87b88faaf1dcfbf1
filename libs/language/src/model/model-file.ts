import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DarkroomError } from '@darkroom/core';
import type { z } from 'zod';

/** A file of a model's directory that is missing or not what it should be. The message names the file and the field. */
export function modelFileError(file: string, problem: string, cause?: unknown): DarkroomError {
  const message = `${file}: ${problem}`;
  return new DarkroomError('model_unsupported', 'language.read-model-directory', message, cause);
}

/**
 * Reads a text file of a model.
 *
 * @param file relative to the directory, as messages show it.
 * @returns undefined if there is none.
 * @throws DarkroomError `model_unsupported` if it cannot be read.
 */
export async function readModelText(directory: string, file: string): Promise<string | undefined> {
  try {
    return await readFile(join(directory, file), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw modelFileError(file, 'could not be read', error);
  }
}

/** Reads a JSON file of a model. @returns undefined if there is none. @throws as {@link readModelText}. */
export async function readModelJson(directory: string, file: string): Promise<unknown> {
  const text = await readModelText(directory, file);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw modelFileError(file, 'is not JSON', error);
  }
}

/** Checks a parsed file. @throws DarkroomError `model_unsupported` naming the first field that is wrong. */
export function checkModelJson<Output>(file: string, json: unknown, schema: z.ZodType<Output>): Output {
  if (json === undefined) throw modelFileError(file, 'is missing');
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0]!;
  throw modelFileError(file, path.length === 0 ? message : `${path.join('.')}: ${message}`, result.error);
}
