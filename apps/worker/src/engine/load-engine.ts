import { DarkroomError, type ModelCard } from '@darkroom/core';
import type { Executor } from '@darkroom/executor';
import type { MemoryAllocation } from '../memory/memory-keeper.ts';
import type { LoadWatch } from './load-watch.ts';

export interface LoadEngineOptions {
  executor: Executor;
  /** Reports a failed load to the system. */
  loads: LoadWatch;
  /**
   * Runs before each load. Reports what is wrong with the files. Throws, unreported, if they are not those that the
   * worker was created for: it is being replaced.
   */
  prepare?: (() => Promise<void>) | undefined;
  /**
   * Set if models share the memory: the model starts asleep, with the card from its files, and acquires memory
   * to load.
   */
  shared?: { allocation: MemoryAllocation; card: ModelCard } | undefined;
  /** Aborted when the process must stop; ends a load. */
  stopSignal?: AbortSignal | undefined;
}

/**
 * Acquires memory if models share it. Prepares before that: replaced files may need less, and evict no other model.
 * `loadEngine` prepares again, because files may be replaced during the wait for memory.
 *
 * @returns false if the load is no longer wanted.
 * @throws what `prepare` throws, or `model_unsupported` if the model can never fit.
 */
export async function acquireMemory({ loads, prepare, shared }: LoadEngineOptions): Promise<boolean> {
  if (shared === undefined) return true;
  try {
    await prepare?.();
    return await loads.watch(() => shared.allocation.acquire());
  } catch (error) {
    // A lost engine's share.
    shared.allocation.free();
    throw error;
  }
}

/**
 * Loads the files on disk into the acquired memory. Frees the memory if the load fails.
 *
 * @param stopping aborted when the worker stops, which is not a load failure.
 * @param isLost returns true if the engine has died since.
 * @throws what the executor throws, or `model_unsupported` if the model exceeds the memory budget.
 */
export async function loadEngine(
  { executor, loads, prepare, shared, stopSignal }: LoadEngineOptions,
  stopping: AbortSignal,
  isLost: () => boolean,
): Promise<ModelCard> {
  const abortLoad = (): void => void executor.shutdown();
  stopSignal?.addEventListener('abort', abortLoad, { once: true });
  try {
    await prepare?.();
    // A stop that arrived before `start` found no engine to end.
    stopSignal?.throwIfAborted();
    stopping.throwIfAborted();
    const card = await loads.watch(() => executor.start(), stopping);
    await loads.watch(async () => {
      await shared?.allocation.loaded();
      // The engine may have died during the measurement; no other code reports that.
      if (isLost()) throw new DarkroomError('engine_failed', 'worker.load', 'the engine died');
    }, stopping);
    stopSignal?.throwIfAborted();
    return card;
  } catch (error) {
    if (shared !== undefined) await executor.shutdown();
    shared?.allocation.free();
    throw error;
  } finally {
    stopSignal?.removeEventListener('abort', abortLoad);
  }
}
