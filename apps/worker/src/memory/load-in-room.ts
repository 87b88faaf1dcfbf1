import type { ModelCard } from '@darkroom/core';
import type { Executor } from '@darkroom/executor';
import type { MemoryPlace } from './memory-keeper.ts';

/**
 * Loads a model and measures it, in the room that was taken for it, if room is anything to be asked for. What could not be loaded takes none.
 *
 * @throws what the executor throws, or that the model takes more than it may.
 */
export async function loadInRoom(executor: Executor, place: MemoryPlace | undefined): Promise<ModelCard> {
  if (place === undefined) return executor.start();
  try {
    const card = await executor.start();
    await place.loaded();
    return card;
  } catch (error) {
    await executor.shutdown();
    place.free();
    throw error;
  }
}
