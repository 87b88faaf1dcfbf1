import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { childEnvironment } from '@darkroom/config';
import { BaseService, type Logger } from '@darkroom/service';
import { BackOff, type BackOffOptions } from '../back-off.ts';

export interface WorkerProcessesOptions {
  count: number;
  /** GPUs to be dealt out in turn; empty leaves what CUDA finds. */
  gpus: readonly string[];
  /** What their ids begin with. */
  workerId: string;
  /** They serve on the ports after it, one each. */
  metricsPort: number | undefined;
  script: string;
  log: Logger;
  /** The pauses before a worker that died is started again (`BackOff`). */
  restart?: BackOffOptions;
}

/** Several workers under one process, each with a GPU of its own: one that dies is started again, beside the others, after a pause that grows while it goes on dying. */
export class WorkerProcesses extends BaseService<WorkerProcessesOptions> {
  /** Those that live, and whether they are ready. */
  readonly #children = new Map<ChildProcess, boolean>();
  #stopping = new AbortController();
  #running: Promise<void>[] = [];

  get isReady(): boolean {
    return [...this.#children.values()].filter(Boolean).length === this.options.count;
  }

  /** Resolves before they are ready: {@link isReady}. */
  protected override async onStart(): Promise<void> {
    this.#stopping = new AbortController();
    const { signal } = this.#stopping;
    this.#running = Array.from({ length: this.options.count }, (_value, index) => this.#keepRunning(index, signal));
  }

  protected override async onStop(): Promise<void> {
    this.#stopping.abort();
    for (const child of this.#children.keys()) child.kill('SIGTERM');
    await Promise.all(this.#running);
  }

  async #keepRunning(index: number, stopping: AbortSignal): Promise<void> {
    const { log, restart = { firstMs: 1000, mostMs: 60_000, calmMs: 60_000 } } = this.options;
    const backOff = new BackOff(restart);
    while (!stopping.aborted) {
      const startedAtMs = performance.now();
      const outcome = await this.#runOnce(index);
      if (stopping.aborted) return;
      const restartMs = backOff.next(performance.now() - startedAtMs);
      log.error({ ...outcome, process: index, restart_ms: restartMs }, 'a worker ended by itself and is started again');
      await delay(restartMs, undefined, { signal: stopping }).catch(() => {});
    }
  }

  async #runOnce(index: number): Promise<{ exit_code: number | null; exit_signal: NodeJS.Signals | null }> {
    const { gpus, workerId, metricsPort, script } = this.options;
    const child = fork(script, {
      // Of their own process groups: a Ctrl-C reaches us only, and they are asked to stop once.
      detached: true,
      env: childEnvironment({
        NUM_WORKER_PROCESSES: '1',
        // An id has 64 characters at most, of which computed ones use all.
        WORKER_ID: `${workerId.slice(0, 61)}-${index}`,
        ...(metricsPort ? { METRICS_PORT: String(metricsPort + 1 + index) } : {}),
        ...(gpus.length > 0 ? { CUDA_VISIBLE_DEVICES: gpus[index % gpus.length]! } : {}),
      }),
    });
    this.#children.set(child, false);
    child.on('message', (message) => {
      if (message === 'ready') this.#children.set(child, true);
    });
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    this.#children.delete(child);
    return { exit_code: code, exit_signal: signal };
  }
}
