export type * from './executor.ts';
export type * from './executor-event.ts';
