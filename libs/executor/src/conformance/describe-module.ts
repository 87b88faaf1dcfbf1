import { fileURLToPath } from 'node:url';
import type { ModelCard, RowRequest } from '@darkroom/core';
import { kinds, type RequestPolicy } from '@darkroom/kinds';
import type { Executor } from '../executor.ts';
import { ModuleExecutor } from '../module/module-executor.ts';
import { PythonExecutor } from '../python/python-executor.ts';
import { describeExecutor, type ExecutorSubject } from './executor-conformance.ts';

/** Request bodies, as clients send them, for testing a custom module. */
export interface ModuleSubject extends Pick<ExecutorSubject, 'isExact'> {
  /** A body whose request ends within about a second. Different numbers give different outputs. */
  short: (number: number) => object;
  /** A body that is still running when a test acts on its first progress event. */
  long: object;
  /** A body that `run` rejects, with the expected error message. */
  bad: { body: object; message: string };
  /** Program that runs a module in Python. Default: `python3`. */
  python?: string;
}

/** Model id used in the tests. */
const model = 'mine';

/**
 * Defines conformance tests that run a module as a worker does: in its own process, with bodies validated and resolved
 * by the API's kinds. Call at the top level of a Vitest file.
 *
 * @param module the URL of its file, or the name of its package.
 */
export function describeModule(
  module: URL | string,
  { short, long, bad, isExact = true, python = 'python3' }: ModuleSubject,
): void {
  const specifier = module instanceof URL ? fileURLToPath(module) : module;
  const options = { module: specifier, model };
  describeExecutor(`of ${specifier}`, {
    create: (onEvents) =>
      takeBodies(
        specifier.endsWith('.py')
          ? new PythonExecutor({ ...options, python, onEvents })
          : new ModuleExecutor({ ...options, onEvents }),
      ),
    shortInput: ({ number, outputs }) => ({ ...short(number), n: outputs }),
    longInput: long,
    badInput: { input: bad.body, message: bad.message },
    isExact,
  });
}

/** Makes an executor accept request bodies, which are resolved to inputs as the API does. */
function takeBodies(executor: Executor): Executor {
  const [start, submit] = [executor.start.bind(executor), executor.submit.bind(executor)];
  let card: ModelCard;
  let resolving: Promise<void> = Promise.resolve();
  return Object.assign(executor, {
    start: async () => (card = await start()),
    submit(requests: readonly RowRequest[]): void {
      // Throws synchronously if the executor is not running.
      submit([]);
      resolving = resolving.then(async () => {
        const resolved = requests.map(async (request) => ({ ...request, input: await inputOf(request.input, card) }));
        submit(await Promise.all(resolved));
      });
    },
  });
}

const policy: RequestPolicy = {
  timeoutS: { default: 3600, max: 3600 },
  webhooks: { allowPrivate: false },
  drawSeed: () => 1,
  readAsset: () => Promise.reject(new Error('a module has no assets')),
};

async function inputOf(body: unknown, card: ModelCard): Promise<unknown> {
  const resolved = await kinds.ofModel(card)!.resolve(body, card, policy);
  if (resolved.status === 'resolved') return resolved.request.input;
  throw new Error(`the API would reject the body: ${resolved.problems.map(({ message }) => message).join('; ')}`);
}
