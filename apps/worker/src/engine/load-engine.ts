import { DarkroomError, type ModelCard } from '@darkroom/core';
import type { Executor } from '@darkroom/executor';
import type { MemoryPlace } from '../memory/memory-keeper.ts';
import type { LoadWatch } from './load-watch.ts';

export interface LoadEngineOptions {
  executor: Executor;
  /** Tells the system when the model cannot be loaded. */
  loads: LoadWatch;
  /** Before each load: looks at what lies there. */
  prepare?: (() => Promise<void>) | undefined;
  /** Others share the memory: it begins asleep, with the card that its files tell, is loaded when it is asked for, and asks for room before. */
  shared?: { place: MemoryPlace; card: ModelCard } | undefined;
  /** Aborted when the process is asked to stop. */
  stopSignal?: AbortSignal | undefined;
}

/** Room for what lies there now; at once where nobody shares the memory. @returns false if it is not wanted any more. */
export async function takeRoom({ loads, prepare, shared }: LoadEngineOptions): Promise<boolean> {
  if (shared === undefined) return true;
  await loads.watch(() => prepare?.() ?? Promise.resolve());
  return loads.watch(() => shared.place.take());
}

/**
 * Loads what lies there now, in the room that was taken for it where others share the memory. What could not be loaded takes none.
 *
 * @param stopping the worker stops, which is no failure.
 * @param isLost whether the engine has died since.
 * @throws what the executor throws, or that the model takes more than it may.
 */
export async function loadEngine(
  { executor, loads, prepare, shared, stopSignal }: LoadEngineOptions,
  stopping: AbortSignal,
  isLost: () => boolean,
): Promise<ModelCard> {
  try {
    await loads.watch(() => prepare?.() ?? Promise.resolve());
    // A stop that came meanwhile has found nothing to end.
    stopSignal?.throwIfAborted();
    stopping.throwIfAborted();
    const card = await loads.watch(() => executor.start());
    await loads.watch(async () => {
      await shared?.place.loaded();
      // While it was measured: nobody else would say so again.
      if (isLost()) throw new DarkroomError('engine_failed', 'worker.load', 'the engine died');
    });
    return card;
  } catch (error) {
    if (shared !== undefined) await executor.shutdown();
    shared?.place.free();
    throw error;
  }
}
