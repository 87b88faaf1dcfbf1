/** Responses API over HTTP, for tests that play the worker. */
import { expect } from 'vitest';
import { responseSchema, type ResponseView } from '../responses/response-view.ts';
import { type RunningRequest, runNext } from './fake-worker.ts';
import { postJson, end, openTextApi, writer } from './open-text-api.ts';
import type { Frame } from './sse-reader.ts';
import type { TestApi, TestApiOptions } from './test-api.ts';

export const responsesPath = '/v1/responses';
export const input = 'something cold';

export type Body = Record<string, unknown>;

export function dataOf(frame: Frame | undefined): Body {
  return JSON.parse(frame?.data ?? 'null') as Body;
}

export async function viewOf(response: Response): Promise<ResponseView> {
  expect(response.status).toBe(200);
  return responseSchema.parse(await response.json());
}

/** Creates a background response and leases its request. */
export async function openResponse(body: Body = {}, options?: TestApiOptions) {
  const test = await openTextApi(options);
  const view = await viewOf(await postJson(test, responsesPath, { input, background: true, ...body }));
  return { test, view, url: `${responsesPath}/${view.id}`, run: await runNext(test.store, writer.id) };
}

export async function finish(run: RunningRequest, text: string, facts = {}): Promise<void> {
  await end(run, text, facts);
  await run.finish({ state: 'succeeded', outputs: 1 });
}

/** Returns status, field and message of the error for a body. */
export async function problemOf(test: TestApi, body: Body, to = responsesPath) {
  const response = await postJson(test, to, body);
  const { error } = (await response.json()) as { error: { param: string; message: string } };
  return [response.status, error.param, error.message];
}
