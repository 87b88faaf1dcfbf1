import { isoTime, type RequestSnapshot } from '@darkroom/core';
import { readOutput, readTexts } from '@darkroom/store';
import type { ApiContext } from '../context/context.ts';
import { estimateRequestEnd, isPossibleAnywhere } from '../follow/estimate-end.ts';
import type { ReceivedOutputs } from '../follow/received-outputs.ts';
import { requestGone } from '../http/api-error.ts';
import { requestUrls } from '../http/public-url.ts';
import type { WithStore } from '../server/store-guard.ts';
import { imageLinks } from '../auth/image-links.ts';

/**
 * Returns a request as clients see it. Texts, and with `isInline` the bytes of other outputs, take a second round trip
 * unless `received` has them.
 */
export async function requestAnswer(
  context: ApiContext,
  found: RequestSnapshot,
  { isInline = false, received, pathPrefix }: { isInline?: boolean; received?: ReceivedOutputs; pathPrefix: string },
) {
  const { withStore, kinds, clock } = context;
  const request = { ...found, isPossible: await isPossibleAnywhere(context, found) };
  const { id, owner, outputs, expiresAtMs } = request;
  const kind = kinds.of(request.kind);
  const [eta, texts, inlined, linkOf] = await Promise.all([
    estimateRequestEnd(context, request),
    kind?.outputs === 'text' ? textsOf(withStore, request) : [],
    isInline && kind?.outputs === 'bytes' ? readOutputs(withStore, request, received) : undefined,
    // Counted from the end of the request, so that links are the same at every poll after it.
    kind?.outputs === 'bytes' && outputs.length > 0
      ? imageLinks(withStore, { owner, fromMs: clock.now(), expiresAtMs, pathPrefix })
      : undefined,
  ]);
  return {
    request_id: id,
    kind: request.kind,
    status: request.state,
    is_canceling: request.isCanceling,
    model: request.model,
    created_at: isoTime(request.createdAtMs),
    started_at: isoTime(request.startedAtMs),
    ended_at: isoTime(request.endedAtMs),
    expires_at: isoTime(request.expiresAtMs),
    is_pinned: request.isPinned,
    queue_position: request.queuePosition ?? null,
    ...(eta === undefined ? {} : { eta_seconds: eta }),
    is_possible: request.isPossible,
    attempts: request.attempts,
    ...kind?.resultView(id, outputs, { inlined, linkOf }),
    // Placed after the result: the request also has the usage of requests without a result.
    ...kind?.requestView(request, texts, { urlOf: (path) => `${pathPrefix}${path}` }),
    ...(request.error === undefined ? {} : { error: request.error }),
    ...(request.retryOf === undefined ? {} : { retry_of: request.retryOf }),
    ...(request.retriedAs === undefined ? {} : { retried_as: request.retriedAs }),
    urls: requestUrls(id, pathPrefix),
  };
}

/** Returns the current texts: from the log until all are done, then from the outputs. */
async function textsOf(withStore: WithStore, request: RequestSnapshot): Promise<string[]> {
  const { id, attempts, outputs, outputCount } = request;
  if (attempts === 0) return Array.from({ length: outputCount }, () => '');
  if (outputs.length < outputCount) return withStore((store) => readTexts(store, id, outputCount));
  return [...(await readOutputs(withStore, request)).values()].map((data) => data.toString('utf8'));
}

/** Reads all finished outputs in parallel, by index. */
async function readOutputs(
  withStore: WithStore,
  { id, outputs }: RequestSnapshot,
  received?: ReceivedOutputs,
): Promise<Map<number, Buffer>> {
  const entries = outputs.map(async (info): Promise<[number, Buffer]> => {
    const { index } = info;
    const data =
      (await received?.read(withStore, id, info)) ?? (await withStore((store) => readOutput(store, id, index)))?.data;
    // The request expired between the two round trips.
    if (data === undefined) throw requestGone(id);
    return [index, data];
  });
  return new Map(await Promise.all(entries));
}
