import { fileURLToPath } from 'node:url';
import type { PipelineComponent } from '@darkroom/core';
import { CommandError } from '../command-error.ts';
import { runProcess } from '../run-process.ts';
import { checkParts } from './check-message.ts';
import type { CheckMeasurement, CheckMessage, CheckPart, CheckRequest } from './check-message.ts';

/** What was measured, by the part of the work, and what the model ran on. */
export type CheckResult = Readonly<Record<CheckPart, CheckMeasurement>> & {
  readonly components: readonly PipelineComponent[];
};

const program = fileURLToPath(
  new URL(
    import.meta.url.endsWith('.ts') ? '../../dist/check/check-process.js' : './check-process.js',
    import.meta.url,
  ),
);

/** Has a model loaded and run. @throws CommandError saying what it failed by, whatever it did to its process. */
export async function runCheck(request: CheckRequest, signal: AbortSignal): Promise<CheckResult> {
  const results: Partial<Record<CheckPart, CheckMeasurement>> = {};
  let components: readonly PipelineComponent[] = [];
  let failure: string | undefined;
  const end = await runProcess<CheckMessage>({
    program,
    request,
    signal,
    onMessage: (message) => {
      if (message.type === 'failed') failure = message.message;
      else if (message.type === 'loaded') components = message.components;
      else results[message.what] = message;
    },
  });
  if (failure !== undefined) throw new CommandError(failure);
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
