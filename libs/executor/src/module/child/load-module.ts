import { formatValue, isObject } from '../contract-violation.ts';
import type { MessageToModule, ModuleExport } from '../module-message.ts';
import type { CreateExecutor, OwnBatchExecutor, OwnExecutor } from '../own-executor.ts';
import { BatchRuns } from './batch-runs.ts';
import { type CreateJudge, type JudgedSubject, maxReasonLength, type OwnJudge } from '../own-judge.ts';

/** A module that has started: `run` answers the calls of the parent. */
export interface LoadedModule {
  readonly info: unknown;
  readonly run: (request: never, signal: AbortSignal) => unknown;
  readonly close?: (() => void | Promise<void>) | undefined;
}

/** The module cannot start. The cause is the module's own error. */
export class UnfitModule extends Error {}

/** @throws UnfitModule */
export async function loadModule(start: Extract<MessageToModule, { type: 'start' }>): Promise<LoadedModule> {
  const { specifier, exportName, model } = start;
  const exports = await attempt('it could not be loaded', () => import(specifier) as Promise<Exports>);
  const create = exports[exportName];
  if (typeof create !== 'function') throw new UnfitModule(`expected a module that exports a function ${exportName}`);
  const made: unknown = await attempt(`${exportName} threw`, () => create({ model }));
  return exportName === 'createExecutor' ? readExecutor(made as OwnExecutor | undefined) : readJudge(made);
}

type Exports = Partial<Record<ModuleExport, CreateExecutor | CreateJudge>>;

async function attempt<Result>(failure: string, act: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await act();
  } catch (cause) {
    throw new UnfitModule(failure, { cause });
  }
}

function readExecutor(executor: OwnExecutor | undefined): LoadedModule {
  if (isObject(executor) && typeof executor['runBatch'] === 'function') {
    const several = executor as object as OwnBatchExecutor;
    const batches = new BatchRuns((requests, signal) => several.runBatch(requests as never, signal));
    return loadedExecutor(executor, (request, signal) => batches.run(request, signal));
  }
  const single = executor as Exclude<OwnExecutor, OwnBatchExecutor> | undefined;
  if (typeof single?.run !== 'function')
    throw new UnfitModule('createExecutor returned no function run, expected { card, slots, run }');
  return loadedExecutor(single, (request, signal) => single.run(request, signal));
}

function loadedExecutor(executor: OwnExecutor, run: LoadedModule['run']): LoadedModule {
  const { card, slots } = executor;
  return { info: { card, slots }, run, close: () => executor.close?.() };
}

function readJudge(made: unknown): LoadedModule {
  const { judgePrompt, judgeImage } = isObject(made) ? made : {};
  const functions = [judgePrompt, judgeImage].filter((each) => each !== undefined);
  if (functions.length === 0 || functions.some((each) => typeof each !== 'function'))
    throw new UnfitModule('expected createJudge to return an object with a function judgePrompt or judgeImage');
  const judge = made as OwnJudge;
  return {
    info: { prompt: judgePrompt !== undefined, image: judgeImage !== undefined },
    async run({ type, subject }: JudgedSubject, signal) {
      return parseVerdict(
        await (type === 'prompt' ? judge.judgePrompt?.(subject, signal) : judge.judgeImage?.(subject, signal)),
      );
    },
  };
}

/** Validates a verdict: a module that returns nothing must not count as allowing. */
function parseVerdict(verdict: unknown): { allowed: boolean; reason: string } {
  const { allowed, reason = '' } = isObject(verdict) ? verdict : {};
  if (allowed === true) return { allowed, reason: '' };
  if (allowed === false && typeof reason === 'string' && reason !== '')
    return { allowed, reason: reason.slice(0, maxReasonLength) };
  throw new Error(`received ${formatValue(verdict)}, expected { allowed: true } or { allowed: false, reason: "…" }`);
}
