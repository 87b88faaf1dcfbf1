/** Reads stored responses and their conversations. */
import type { StoredEvent, RequestSnapshot } from '@darkroom/core';
import { type TextMessage, text as textKind } from '@darkroom/kinds';
import { readEvents } from '@darkroom/store';
import type { ApiContext } from '../context/context.ts';
import { findRequest } from '../follow/find-request.ts';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError, invalidField, requestGone, requestNotFound } from '../http/api-error.ts';
import type { InputItem } from './response-input.ts';
import { idOf, requestIdIn } from './response-ids.ts';
import { joinCalls, messageOfItem, type ResponseItem } from './response-items.ts';
import { ResponseReader } from './response-events.ts';
import { conversationOf, shownOf, type StoredResponse } from './response-view.ts';

type Store = Pick<ApiContext, 'withStore'>;

/** Log entries per read. Most logs of text fit in one read, because they are compacted. */
const entriesPerRead = 256;

/** Finds the response named in the path. Throws 404 or 410; 404 also for other requests and for `store: false`. */
export function findResponse(c: ApiCall, store: Store): Promise<RequestSnapshot> {
  const given = c.req.param('id') ?? '';
  const id = requestIdIn('response', given);
  if (id === undefined) throw requestNotFound(given);
  c.set('requestId', id);
  return findStored(store, id, c.get('owner'));
}

async function findStored({ withStore }: Store, id: string, owner: string): Promise<RequestSnapshot> {
  const request = await findRequest(withStore, id, owner);
  if (request.kind !== textKind.id || shownOf(request)?.store !== true) throw requestNotFound(idOf('response', id));
  return request;
}

/** Reads the log of a response up to now, usually in one round trip. Throws 410 if the log has expired. */
export async function readResponse({ withStore }: Store, request: StoredResponse): Promise<ResponseReader> {
  const { id } = request;
  const reader = new ResponseReader(request);
  let events: StoredEvent[] = [];
  let after = 0;
  do {
    events = await withStore((store) => readEvents(store, id, { after, limit: entriesPerRead }));
    for (const event of events) {
      reader.read(event);
      after = event.sequence;
    }
  } while (events.length === entriesPerRead);
  if (after === 0) throw requestGone(id);
  return reader;
}

/** Returns the messages of a response that has ended, including its answer. Errors are a 400 that names `field`. */
export async function readConversation(
  store: Store,
  { id, owner, field }: { id: unknown; owner: string; field: string },
): Promise<TextMessage[]> {
  const requestId = requestIdIn('response', id);
  if (requestId === undefined) throw invalidField(field, id, 'the id of a response');
  const { request, items } = await readAnswer(store, { id: requestId, shownId: id, owner, field });
  const conversation = conversationOf(request);
  if (conversation === undefined)
    throw invalidField(
      field,
      id,
      'a response whose messages are stored: this server deletes them when a response ends',
    );
  return joinCalls([...conversation.messages, ...items.map((item) => messageOfItem(item))]);
}

/** Replaces references with the items that they refer to. Throws 400 if an item does not exist. */
export function resolveReferences(store: Store, items: readonly InputItem[], owner: string): Promise<TextMessage[]> {
  return Promise.all(
    items.map(async (item) => {
      if ('message' in item) return item.message;
      const { reference, requestId: id, field } = item;
      const { items: stored } = await readAnswer(store, { id, shownId: reference, owner, field });
      const found = stored.find((one) => one.id === reference);
      if (found === undefined) throw invalidField(field, reference, 'the id of an item of the response');
      return messageOfItem(found);
    }),
  );
}

interface AnswerOptions {
  id: string;
  /** Id that the client sent, for error messages. */
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
      throw invalidField(field, shownId, `a response that has ended, this one is ${state.status}`);
    return { request, items: state.items };
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 410))
      throw invalidField(field, shownId, 'the id of a stored response, this one does not exist');
    throw error;
  }
}
