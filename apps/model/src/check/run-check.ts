import type { LoadModelOptions } from '@darkroom/diffusion';
import { CommandError } from '../command-error.ts';
import { runProcess, type RunProcessOptions } from '../run-process.ts';
import type { TriedModel } from '../tried-model.ts';
import type { CheckPart, CheckResult } from './check-process.ts';
import type { TextCheckPart, TextCheckResult } from './text-check-process.ts';

/** Each part of the work, in their order. */
type Doings<Part extends string> = readonly (readonly [Part, doing: string])[];

const doings: Doings<CheckPart> = [
  ['load', 'While the model was loaded'],
  ['encode', 'While the prompt was encoded'],
  ['step', 'In the first step'],
  ['decode', 'While the picture was decoded'],
];
const textDoings: Doings<TextCheckPart> = [
  ['load', 'While the model was loaded'],
  ['read', 'While the prompt was read'],
  ['write', 'While the text was written'],
];

/** Has a model loaded and run. @throws CommandError saying what it failed by, whatever it did to its process. */
export function runCheck(request: { model: LoadModelOptions }, signal: AbortSignal): Promise<CheckResult> {
  return runParts<CheckPart, CheckResult>({ program: 'check/check-process', request, signal }, doings);
}

/** Has a model of text loaded, and write. @throws as {@link runCheck}. */
export function runTextCheck(request: { model: TriedModel }, signal: AbortSignal): Promise<TextCheckResult> {
  return runParts<TextCheckPart, TextCheckResult>({ program: 'check/text-check-process', request, signal }, textDoings);
}

async function runParts<Part extends string, Result extends Record<Part, unknown>>(
  options: Omit<RunProcessOptions<Partial<Result>>, 'onMessage'>,
  parts: Doings<Part>,
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
