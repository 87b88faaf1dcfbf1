import { fileURLToPath } from 'node:url';
import type { ModelCard, RowRequest } from '@darkroom/core';
import { kinds, type RequestOptions } from '@darkroom/kinds';
import type { ExecutorListener } from '../executor-event.ts';
import { ModuleExecutor } from '../module/module-executor.ts';
import { describeExecutor, type ExecutorSubject } from './executor-conformance.ts';

/** Work for a module, as bodies that a client would send. */
export interface ModuleSubject extends Pick<ExecutorSubject, 'isExact'> {
  /** One that has ended within a second or so. Another number gives other outputs. */
  short: (number: number) => object;
  /** One that takes so long that nobody who waits for its first word finds it at its end. */
  long: object;
  /** One that `run` refuses, and what it says of it. */
  bad: { body: object; message: string };
}

/** The id under which it is tried. */
const model = 'mine';

/**
 * Tries a module as a worker runs it: in a process of its own, with what its requests become at the door. To be called at the top of a
 * file of tests, with Vitest.
 *
 * @param module the URL of its file, or the name of its package.
 */
export function describeModule(module: URL | string, { short, long, bad, isExact = true }: ModuleSubject): void {
  const specifier = module instanceof URL ? fileURLToPath(module) : module;
  describeExecutor(`of ${specifier}`, {
    create: (onEvents) => new BodyExecutor(specifier, onEvents),
    shortInput: ({ number, outputs }) => ({ ...short(number), n: outputs }),
    longInput: long,
    badInput: { input: bad.body, message: bad.message },
    isExact,
  });
}

/** Is given bodies, and makes of them what the door does. */
class BodyExecutor extends ModuleExecutor {
  #card: ModelCard | undefined;
  #resolving: Promise<void> = Promise.resolve();

  constructor(module: string, onEvents: ExecutorListener) {
    super({ module, model, onEvents });
  }

  override async start(): Promise<ModelCard> {
    this.#card = await super.start();
    return this.#card;
  }

  override submit(requests: readonly RowRequest[]): void {
    // Throws where it would.
    super.submit([]);
    this.#resolving = this.#resolving.then(async () => {
      const resolved = requests.map(async (request) => ({
        ...request,
        input: await inputOf(request.input, this.#card!),
      }));
      super.submit(await Promise.all(resolved));
    });
  }
}

const options: RequestOptions = {
  timeoutS: { default: 3600, max: 3600 },
  webhooks: { allowPrivate: false, progressIntervalMs: 0 },
  drawSeed: () => 1,
  readAsset: () => Promise.reject(new Error('a module has no assets')),
};

async function inputOf(body: unknown, card: ModelCard): Promise<unknown> {
  const resolved = await kinds.ofModel(card)!.resolve(body, card, options);
  if (resolved.status === 'resolved') return resolved.request.input;
  throw new Error(`the door refuses the body: ${resolved.problems.map(({ message }) => message).join('; ')}`);
}
