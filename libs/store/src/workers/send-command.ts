import type { WorkerMove } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import type { WorkerName } from './register-worker.ts';

/** Commands that an operator can send to a worker. */
export type WorkerCommand = 'sleep' | 'wake' | 'restart' | 'check_health' | 'memory' | 'rpc';

/** A method of the worker's engine, for the command `rpc`. */
export interface EngineCall {
  readonly method: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** A command of an operator. `call`: the name to reply under; no reply if absent. */
export interface OperatorMessage {
  type: WorkerCommand;
  call?: string;
  /** Present for `rpc`. */
  rpc?: EngineCall;
}

/** Messages that are no part of a state transition. `move`: to another shard of the model. */
export type CommandMessage = OperatorMessage | ({ type: 'move' } & Pick<WorkerMove, 'to' | 'isPatient'>);

/** Appends a command to a worker's inbox. Returns false if there is no such worker. One round trip. */
export async function sendCommand(
  store: StoreConnection,
  { shard, workerId }: WorkerName,
  command: CommandMessage,
): Promise<boolean> {
  const values = [workerId, JSON.stringify(command)];
  return (await runScript(store, 'workers/send-command', store.keysOf(shard), values)) === 'sent';
}
