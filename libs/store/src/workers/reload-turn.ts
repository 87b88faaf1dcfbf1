/** Workers of a model load it anew one after the other, so that the others serve meanwhile. */
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import type { WorkerIdentity } from './register-worker.ts';

/** Takes the turn, or keeps it: it is over after `lastsMs` without this. False while it is another worker's. One round trip. */
export async function takeReloadTurn(
  store: StoreConnection,
  { model, incarnation }: WorkerIdentity,
  lastsMs: number,
): Promise<boolean> {
  const values = [incarnation, lastsMs];
  return (await runScript(store, 'workers/reload-turn', store.keysOf(model), values)) === 1;
}

/** Somebody else may take it. */
export async function leaveReloadTurn(store: StoreConnection, { model, incarnation }: WorkerIdentity): Promise<void> {
  await runScript(store, 'workers/reload-turn', store.keysOf(model), [incarnation, 0]);
}
