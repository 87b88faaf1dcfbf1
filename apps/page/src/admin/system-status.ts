import type { DeadRequestList, KeyList, SystemStatus as Status } from '@darkroom/client';

export type WorkerView = Status['workers'][number];
export type QueueView = Status['queues'][number];
/** A file that a model is served without. */
export type RefusedFileView = Status['refused_files'][number];
export type DeadRequestView = DeadRequestList['data'][number];
export type KeyView = KeyList['data'][number];

/** A snapshot of the system, by the server's clock. */
export interface SystemStatus extends Status {
  dead: readonly DeadRequestView[];
  keys: KeyList;
}
