import type { LoadModelOptions } from '@darkroom/diffusion';
import { CommandError } from '../command-error.ts';
import { runProcess } from '../run-process.ts';
import type { CheckPart, CheckResult } from './check-process.ts';

/** In their order. */
const doings: readonly (readonly [CheckPart, doing: string])[] = [
  ['load', 'While the model was loaded'],
  ['encode', 'While the prompt was encoded'],
  ['step', 'In the first step'],
  ['decode', 'While the picture was decoded'],
];

/** Has a model loaded and run. @throws CommandError saying what it failed by, whatever it did to its process. */
export async function runCheck(request: { model: LoadModelOptions }, signal: AbortSignal): Promise<CheckResult> {
  const result: Partial<CheckResult> = {};
  const end = await runProcess({
    program: 'check/check-process',
    request,
    signal,
    onMessage: (message: Partial<CheckResult>) => Object.assign(result, message),
  });
  const undone = doings.find(([part]) => result[part] === undefined);
  if (undone === undefined) return result as CheckResult;
  throw new CommandError(`${undone[1]}, its process ${end}`);
}
