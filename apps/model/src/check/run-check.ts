import type { PipelineComponent } from '@darkroom/core';
import { CommandError } from '../command-error.ts';
import { runProcess } from '../run-process.ts';
import { checkParts } from './check-message.ts';
import type { CheckMeasurement, CheckMessage, CheckPart, CheckRequest } from './check-message.ts';

/** What was measured, by the part of the work, and what the model ran on. */
export type CheckResult = Readonly<Record<CheckPart, CheckMeasurement>> & {
  readonly components: readonly PipelineComponent[];
};

/** Has a model loaded and run. @throws CommandError saying what it failed by, whatever it did to its process. */
export async function runCheck(request: CheckRequest, signal: AbortSignal): Promise<CheckResult> {
  const results: Partial<Record<CheckPart, CheckMeasurement>> = {};
  let components: readonly PipelineComponent[] = [];
  const end = await runProcess<CheckMessage>({
    program: 'check/check-process',
    request,
    signal,
    onMessage: (message) => {
      if (message.type === 'loaded') components = message.components;
      else results[message.what] = message;
    },
  });
  const { load, encode, step, decode } = results;
  if (load && encode && step && decode) return { load, encode, step, decode, components };
  throw new CommandError(`${whatWasDone(results)}, its process ${end}`);
}

const doings: Readonly<Record<CheckPart, string>> = {
  load: 'While the model was loaded',
  encode: 'While the prompt was encoded',
  step: 'In the first step',
  decode: 'While the picture was decoded',
};

function whatWasDone(results: Partial<Record<CheckPart, unknown>>): string {
  return doings[checkParts.find((part) => results[part] === undefined) ?? 'decode'];
}
