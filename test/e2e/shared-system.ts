/**
 * The system that all test files here share, for reading and submitting. Tests that kill, pause, count or configure
 * processes start a system of their own.
 */
import { connectStore, type StoreConnection } from '@darkroom/store';
import { afterAll, inject } from 'vitest';

/** Names of the shared system's text models; `caller` of caller-model.ts is another. */
export const writer = 'emoji-writer';
export const blockWriter = 'emoji-writer-diffusion';
export const imageReader = 'emoji-reader';

export interface SharedSystem {
  /** Address of the first API. */
  url: string;
  /** Addresses of both API replicas. */
  apis: readonly string[];
  prefix: string;
  store: StoreConnection;
  /** File with the JSON log lines of all processes. */
  logFile: string;
}

/** Returns the shared system. Call it at the top of a file or a group: its store connection closes after that. */
export function useSharedSystem(): SharedSystem {
  const { prefix, apis, logFile } = inject('sharedSystem');
  const store = connectStore({ url: inject('redisUrl'), prefix });
  afterAll(() => store.close());
  return { url: apis[0]!, apis, prefix, store, logFile };
}
