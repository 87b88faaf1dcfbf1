/** Calls the OpenAI-compatible image route of a test API. */
import { modelOfRequestId } from '@darkroom/core';
import { readRequest, type StoreConnection } from '@darkroom/store';
import { allKeys } from '@darkroom/testing';
import { expect } from 'vitest';
import type { TestApi } from './test-api.ts';

export const generationsPath = '/v1/images/generations';

export async function generate(
  test: TestApi,
  body: unknown,
  { headers = {}, signal }: { headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Response> {
  return test.api.request(generationsPath, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
}

/** Returns the ids of all stored requests. */
export async function storedIds(store: StoreConnection): Promise<string[]> {
  const prefix = store.keysOf('tiny').request('');
  const ids = (await allKeys(store)).filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
  return ids.filter((id) => modelOfRequestId(id) !== undefined);
}

/** Waits until exactly one request is stored and returns its id. */
export async function onlyId(store: StoreConnection): Promise<string> {
  await expect.poll(() => storedIds(store)).toHaveLength(1);
  return (await storedIds(store))[0]!;
}

export async function stateOf(store: StoreConnection, id: string): Promise<string> {
  const result = await readRequest(store, id);
  return result.status === 'found' ? result.request.state : result.status;
}
