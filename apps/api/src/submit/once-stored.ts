import { isStoreAway } from '../server/store-guard.ts';

/**
 * Runs what is left to do for a request that has just been stored: undefined when Redis cannot be asked any more. A 5xx
 * at that point would make clients that try again send a second request.
 */
export async function onceStored<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (isStoreAway(error)) return undefined;
    throw error;
  }
}
