import type * as Api from './api-types.ts';
import type { RequestStatus, RequestSummary } from './answers.ts';
import { retrying, sendForJson } from './http.ts';
import type { Call, SignalOptions } from './options.ts';

export interface ListOptions extends SignalOptions {
  /** Only requests of this model. */
  model?: string | undefined;
  /** Only requests in these states. */
  status?: readonly RequestStatus[] | undefined;
  /** Only requests that were submitted at this time or later. */
  createdAfter?: Date | undefined;
  /** Only requests that were submitted before this time. */
  createdBefore?: Date | undefined;
  /** Requests per page, at most 100, the default. */
  pageSize?: number | undefined;
}

/** Yields the caller's requests page by page. */
export async function* listRequests(call: Call, options: ListOptions): AsyncGenerator<RequestSummary, void> {
  const { model, status, createdAfter, createdBefore, pageSize = 100 } = options;
  const query = new URLSearchParams({ limit: String(pageSize) });
  if (model !== undefined) query.set('model', model);
  if (status !== undefined) query.set('status', status.join(','));
  if (createdAfter !== undefined) query.set('created_after', createdAfter.toISOString());
  if (createdBefore !== undefined) query.set('created_before', createdBefore.toISOString());
  for (;;) {
    const path = `/v1/predict?${query.toString()}`;
    const { data, next_cursor: next } = (await retrying(call, () => sendForJson<Api.RequestPage>(call, path))).body;
    yield* data;
    if (next === null) return;
    query.set('cursor', next);
  }
}
