import { fileURLToPath } from 'node:url';
import { CommandError } from '../command-error.ts';
import { runProcess } from '../run-process.ts';
import type { CheckMessage, CheckRequest } from './check-message.ts';

/** What was done, by the name of the work. */
export type CheckResult = Readonly<Record<'load' | 'step' | 'decode', { ms: number; peakBytes: number }>>;

const program = fileURLToPath(
  new URL(
    import.meta.url.endsWith('.ts') ? '../../dist/check/check-process.js' : './check-process.js',
    import.meta.url,
  ),
);

/** Has a model loaded and run. @throws CommandError saying what it failed by, whatever it did to its process. */
export async function runCheck(request: CheckRequest, signal: AbortSignal): Promise<CheckResult> {
  const results: Partial<Record<'load' | 'step' | 'decode', { ms: number; peakBytes: number }>> = {};
  let failure: string | undefined;
  const end = await runProcess<CheckMessage>({
    program,
    request,
    signal,
    onMessage: (message) => {
      if (message.type === 'failed') failure = message.message;
      else results[message.what] = { ms: message.ms, peakBytes: message.peakBytes };
    },
  });
  if (failure !== undefined) throw new CommandError(failure);
  const { load, step, decode } = results;
  if (load && step && decode) return { load, step, decode };
  throw new CommandError(`${whatWasDone(results)}, its process ${end}`);
}

function whatWasDone({ load, step }: { load?: unknown; step?: unknown }): string {
  if (load === undefined) return 'While the model was loaded';
  return step === undefined ? 'In the first step' : 'While the picture was decoded';
}
