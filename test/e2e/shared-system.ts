/** The system that all files here share. It is for looking and asking: who kills, pauses, counts or sets starts one of their own. */
import { connectStore, type StoreConnection } from '@darkroom/store';
import { afterAll, inject } from 'vitest';

/** Its models of text; `caller` of caller-model.ts is one more. */
export const writer = 'emoji-writer';
export const blockWriter = 'emoji-writer-diffusion';

export interface SharedSystem {
  /** Address of the first API. */
  url: string;
  /** Of both. */
  apis: readonly string[];
  prefix: string;
  store: StoreConnection;
  /** Where all processes log, as JSON lines. */
  logFile: string;
}

/** To be called where a file or a group begins, which has a connection of its own to the store until it is over. */
export function useSharedSystem(): SharedSystem {
  const { prefix, apis, logFile } = inject('sharedSystem');
  const store = connectStore({ url: inject('redisUrl'), prefix });
  afterAll(() => store.close());
  return { url: apis[0]!, apis, prefix, store, logFile };
}
