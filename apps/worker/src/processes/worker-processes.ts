import { readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { childEnvironment } from '@darkroom/config';
import { BackOff, type BackOffOptions, Child, type ChildEnd, itemAt } from '@darkroom/core';
import { BaseService, type Logger } from '@darkroom/service';
import { z } from 'zod';

export interface WorkerProcessesOptions {
  count: number;
  /** GPUs assigned round robin; if empty, CUDA chooses. */
  gpus: readonly string[];
  /** Prefix of the workers' ids. */
  workerId: string;
  /** The workers' metrics ports follow this one. */
  metricsPort: number | undefined;
  script: string;
  log: Logger;
  /** Aborted when the process must stop, also during the start. */
  stopSignal: AbortSignal;
  /** Pauses before a dead worker is restarted (`BackOff`). */
  restart?: BackOffOptions;
}

/**
 * Several worker processes under one parent, each with its own GPU. Restarts one that dies, with growing pauses, beside
 * the others.
 */
export class WorkerProcesses extends BaseService<WorkerProcessesOptions> {
  /** Live processes, and whether each is ready. */
  readonly #children = new Map<Child<never, string>, boolean>();
  #stopping = new AbortController();
  #running: Promise<void>[] = [];
  #announceReady = (): void => {};

  get isReady(): boolean {
    return [...this.#children.values()].filter(Boolean).length === this.options.count;
  }

  /** Resolves when the first process is ready and so serves a model; {@link isReady} tells whether all are. */
  protected override async onStart(): Promise<void> {
    this.#stopping = new AbortController();
    const { signal } = this.#stopping;
    const { count, stopSignal } = this.options;
    if (stopSignal.aborted) return;
    const firstReady = new Promise<void>((resolve) => {
      this.#announceReady = resolve;
      stopSignal.addEventListener('abort', () => resolve(), { once: true });
    });
    this.#running = Array.from({ length: count }, (_value, index) => this.#keepRunning(index, signal));
    await firstReady;
  }

  protected override async onStop(): Promise<void> {
    this.#stopping.abort();
    for (const child of this.#children.keys()) void child.stop('SIGTERM');
    await Promise.all(this.#running);
  }

  async #keepRunning(index: number, stopping: AbortSignal): Promise<void> {
    const { log, restart = { firstMs: 1000, maxMs: 60_000, resetAfterMs: 60_000 } } = this.options;
    const backOff = new BackOff(restart);
    while (!stopping.aborted) {
      const startedAtMs = performance.now();
      const { code, signal, how } = await this.#runOnce(index);
      if (stopping.aborted) return;
      const restartMs = backOff.next(performance.now() - startedAtMs);
      log.error(
        { exit_code: code, exit_signal: signal, how, process: index, restart_ms: restartMs },
        'worker process exited; restarting',
      );
      await delay(restartMs, undefined, { signal: stopping }).catch(() => {});
    }
  }

  async #runOnce(index: number): Promise<ChildEnd> {
    const { gpus, workerId, metricsPort, script } = this.options;
    const child = new Child<never, string>({
      entry: script,
      nodeFlags: process.execArgv,
      // A Ctrl-C reaches only this process, which then stops the workers once.
      outlivesParent: true,
      environment: childEnvironment({
        NUM_WORKER_PROCESSES: '1',
        // An id has at most 64 characters; computed ids use all of them.
        WORKER_ID: `${workerId.slice(0, 61)}-${index}`,
        ...(metricsPort ? { METRICS_PORT: String(metricsPort + 1 + index) } : {}),
        ...(gpus.length > 0 ? { CUDA_VISIBLE_DEVICES: itemAt(gpus, index % gpus.length) } : {}),
      }),
      schema: z.string(),
      onMessage: (message) => {
        if (message !== 'ready') return;
        this.#children.set(child, true);
        this.#announceReady();
      },
    });
    this.#children.set(child, false);
    const end = await child.ended;
    this.#children.delete(child);
    return end;
  }
}

/** Lists this machine's NVIDIA GPUs by CUDA index: there is one `/dev/nvidia<n>` per GPU. */
export function listGpus(deviceDirectory = '/dev'): string[] {
  const gpus = readdirSync(deviceDirectory).filter((name) => /^nvidia\d+$/.test(name));
  // A container given the third GPU of a machine sees it as nvidia2, and CUDA in it counts from 0.
  return gpus.map((_name, index) => String(index));
}
