import { isoTime, type RequestStatus } from '@darkroom/core';
import { readOutput, readTexts } from '@darkroom/store';
import type { ApiContext } from '../context.ts';
import { endOf, isPossibleAnywhere } from '../follow/estimate-end.ts';
import type { HeardOutputs } from '../follow/heard-outputs.ts';
import { requestGone } from '../http/api-error.ts';
import { pictureLinks, requestUrls } from '../http/urls.ts';
import type { AskStore } from '../server/store-guard.ts';

/** A request as clients see it. Texts, and with `isInline` the bytes of other outputs, take a second round trip, unless they were heard. */
export async function requestAnswer(
  context: ApiContext,
  found: RequestStatus,
  { isInline = false, heard }: { isInline?: boolean; heard?: HeardOutputs } = {},
) {
  const { askStore, kinds, clock } = context;
  const request = { ...found, isPossible: await isPossibleAnywhere(context, found) };
  const { id, owner, outputs } = request;
  const kind = kinds.of(request.kind);
  const [eta, texts, inlined, linkOf] = await Promise.all([
    endOf(context, request),
    kind?.outputs === 'text' ? textsOf(askStore, request) : [],
    isInline && kind?.outputs === 'bytes' ? readOutputs(askStore, request, heard) : undefined,
    // Once it has ended they are the same at every poll.
    kind?.outputs === 'bytes' && outputs.length > 0
      ? pictureLinks(askStore, { owner, fromMs: request.endedAtMs ?? clock.now() })
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
    queue_position: request.queuePosition ?? null,
    ...(eta === undefined ? {} : { eta_seconds: eta }),
    is_possible: request.isPossible,
    attempts: request.attempts,
    ...kind?.requestView(request, texts),
    ...kind?.resultView(id, outputs, { inlined, linkOf }),
    ...(request.error === undefined ? {} : { error: request.error }),
    ...(request.retryOf === undefined ? {} : { retry_of: request.retryOf }),
    ...(request.retriedAs === undefined ? {} : { retried_as: request.retriedAs }),
    urls: requestUrls(id),
  };
}

/** What stands of each: by its log, until all are done. */
async function textsOf(askStore: AskStore, request: RequestStatus): Promise<string[]> {
  const { id, attempts, outputs, outputCount } = request;
  if (attempts === 0) return Array.from({ length: outputCount }, () => '');
  if (outputs.length < outputCount) return askStore((store) => readTexts(store, id, outputCount));
  return [...(await readOutputs(askStore, request)).values()].map((data) => data.toString('utf8'));
}

/** All finished ones at once. */
async function readOutputs(
  askStore: AskStore,
  { id, outputs }: RequestStatus,
  heard?: HeardOutputs,
): Promise<Map<number, Buffer>> {
  const entries = outputs.map(async (info): Promise<[number, Buffer]> => {
    const { index } = info;
    const data =
      (await heard?.read(askStore, id, info)) ?? (await askStore((store) => readOutput(store, id, index)))?.data;
    // Its time ended between the two round trips.
    if (data === undefined) throw requestGone(id);
    return [index, data];
  });
  return new Map(await Promise.all(entries));
}
