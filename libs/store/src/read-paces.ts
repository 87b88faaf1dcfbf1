import type { WorkerPace } from '@darkroom/core';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

/** A live worker that has taken steps. */
export interface MeasuredWorker extends WorkerPace {
  /** Rows it can step at once. */
  capacity: number;
}

/** One round trip. */
export async function readPaces(store: StoreConnection, model: string): Promise<MeasuredWorker[]> {
  const reply = (await runScript(store.redis, 'read-paces', store.keysOf(model).base)) as string[];
  const workers: MeasuredWorker[] = [];
  for (let position = 0; position + 1 < reply.length; position += 2)
    workers.push({ capacity: Number(reply[position]), ...(JSON.parse(reply[position + 1]!) as WorkerPace) });
  return workers;
}
