/** Responses that are stored, and the conversations they stand in. */
import type { RequestEvent, RequestStatus } from '@darkroom/core';
import { type TextMessage, text as textKind } from '@darkroom/kinds';
import { readEvents } from '@darkroom/store';
import type { ApiContext } from '../context.ts';
import { findRequest } from '../follow/find-request.ts';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError, invalidField, requestGone, requestNotFound } from '../http/api-error.ts';
import type { InputItem } from './response-input.ts';
import { idOf, requestIdIn } from './response-ids.ts';
import { joinCalls, messageOfItem, type ResponseItem } from './response-items.ts';
import { ResponseReader } from './response-events.ts';
import { saidOf, shownOf, type StoredResponse } from './response-view.ts';

type Store = Pick<ApiContext, 'askStore'>;

/** Entries of a log at a time; one of text has been made shorter. */
const limit = 256;

/** The response that a path names. Throws 404, also for a request that is no response or was not to be kept as one, or 410. */
export function findResponse(c: ApiCall, store: Store): Promise<RequestStatus> {
  const given = c.req.param('id') ?? '';
  const id = requestIdIn('response', given);
  if (id === undefined) throw requestNotFound(given);
  c.set('requestId', id);
  return findStored(store, id, c.get('owner'));
}

async function findStored({ askStore }: Store, id: string, owner: string): Promise<RequestStatus> {
  const request = await findRequest(askStore, id, owner);
  if (request.kind !== textKind.id || shownOf(request)?.store !== true) throw requestNotFound(idOf('response', id));
  return request;
}

/** What the log of a response says by now. Throws 410 when it is gone. One round trip, as a rule. */
export async function readResponse({ askStore }: Store, request: StoredResponse): Promise<ResponseReader> {
  const { id } = request;
  const reader = new ResponseReader(request);
  let events: RequestEvent[] = [];
  let after = 0;
  do {
    events = await askStore((store) => readEvents(store, id, { after, limit }));
    for (const event of events) {
      reader.read(event);
      after = event.sequence;
    }
  } while (events.length === limit);
  if (after === 0) throw requestGone(id);
  return reader;
}

/** All that was said in a response that has ended, its answer too. Throws 400 in the name of `field`. */
export async function readConversation(
  store: Store,
  { id, owner, field }: { id: unknown; owner: string; field: string },
): Promise<TextMessage[]> {
  const requestId = requestIdIn('response', id);
  if (requestId === undefined) throw invalidField(field, id, 'the id of a response');
  const { request, items } = await readAnswer(store, { id: requestId, shownId: id, owner, field });
  const said = saidOf(request);
  if (said === undefined)
    throw invalidField(field, id, 'one whose messages are kept: this server keeps none after the end');
  return joinCalls([...said.messages, ...items.map((item) => messageOfItem(item))]);
}

/** Items with what references stand for. Throws 400 where there is none. */
export function resolveReferences(store: Store, items: readonly InputItem[], owner: string): Promise<TextMessage[]> {
  return Promise.all(
    items.map(async (item) => {
      if ('message' in item) return item.message;
      const { reference, requestId: id, field } = item;
      const { items: stored } = await readAnswer(store, { id, shownId: reference, owner, field });
      const found = stored.find((one) => one.id === reference);
      if (found === undefined) throw invalidField(field, reference, 'the id of an item that the response has');
      return messageOfItem(found);
    }),
  );
}

interface AnswerOptions {
  id: string;
  /** As the client knows it. */
  shownId: unknown;
  owner: string;
  field: string;
}

async function readAnswer(
  store: Store,
  { id, shownId, owner, field }: AnswerOptions,
): Promise<{ request: StoredResponse; items: readonly ResponseItem[] }> {
  try {
    const request = await findStored(store, id, owner);
    const { state } = await readResponse(store, request);
    if (state.status !== 'completed' && state.status !== 'incomplete')
      throw invalidField(field, shownId, `a response that has come to its end, and this one is ${state.status}`);
    return { request, items: state.items };
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 410))
      throw invalidField(field, shownId, 'a response that is kept, and there is none of this id');
    throw error;
  }
}
