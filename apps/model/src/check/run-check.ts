import type { LoadImageModelOptions } from '@darkroom/diffusion';
import { CommandError } from '../command/command-error.ts';
import { runProcess, type RunProcessOptions } from '../command/run-process.ts';
import type { TriedModel } from './tried-model.ts';
import type { CheckPart, CheckResult } from './check-process.ts';
import type { TextCheckPart, TextCheckResult } from './text-check-process.ts';

/** Parts of the check in order, with their descriptions in error messages. */
type PartDescriptions<Part extends string> = readonly (readonly [Part, doing: string])[];

const imageParts: PartDescriptions<CheckPart> = [
  ['load', 'While the model was loaded'],
  ['encode', 'While the prompt was encoded'],
  ['step', 'In the first step'],
  ['decode', 'While the image was decoded'],
];
const textParts: PartDescriptions<TextCheckPart> = [
  ['load', 'While the model was loaded'],
  ['read', 'While the prompt was read'],
  ['write', 'While the text was written'],
];

/**
 * Checks an image model in its own process.
 *
 * @throws CommandError naming the failed part, even if the process crashed.
 */
export function runCheck(request: { model: LoadImageModelOptions }, signal: AbortSignal): Promise<CheckResult> {
  return runParts<CheckPart, CheckResult>({ program: 'check/check-process', request, signal }, imageParts);
}

/** Checks a text model in its own process. @throws as {@link runCheck}. */
export function runTextCheck(request: { model: TriedModel }, signal: AbortSignal): Promise<TextCheckResult> {
  return runParts<TextCheckPart, TextCheckResult>({ program: 'check/text-check-process', request, signal }, textParts);
}

async function runParts<Part extends string, Result extends Record<Part, unknown>>(
  options: Omit<RunProcessOptions<Partial<Result>>, 'onMessage'>,
  parts: PartDescriptions<Part>,
): Promise<Result> {
  const result: Partial<Result> = {};
  const end = await runProcess({
    ...options,
    onMessage: (message: Partial<Result>) => Object.assign(result, message),
  });
  const undone = parts.find(([part]) => result[part] === undefined);
  if (undone === undefined) return result as Result;
  throw new CommandError(`${undone[1]}, its process ${end}`);
}
