/** OpenAI's responses API: a view of text requests whose streams can be resumed after any event (docs/responses.md). */
import { terminalStates } from '@darkroom/core';
import {
  isForUpstream,
  type StoredTextInput,
  type TextInput,
  text as textKind,
  type UpstreamTextInput,
} from '@darkroom/kinds';
import { dropRequest } from '@darkroom/store';
import type { ApiContext } from '../context/context.ts';
import { withClientFieldNames } from '../compat/client-field-names.ts';
import { awaitEnd } from '../follow/await-end.ts';
import { cancelFound, present } from '../follow/find-request.ts';
import type { ApiCall } from '../http/api-env.ts';
import { checkField, invalidField } from '../http/api-error.ts';
import { type Route, routesOf } from '../openapi/api-route.ts';
import { readJsonBody } from '../body/read-json-body.ts';
import { answerStored, submitWatched } from '../answer/answer-stored.ts';
import { followStored } from '../answer/follow-stored.ts';
import type { ClientWatch } from '../answer/watch-client.ts';
import {
  onceStored,
  resolveSubmission,
  type Submission,
  type SubmittedRequest,
  submitRequest,
} from '../submit/submit-request.ts';
import { findResponse, readConversation, readResponse, resolveReferences } from './find-response.ts';
import { ResponseReader } from './response-events.ts';
import { parseInput } from './response-input.ts';
import { itemsLimit, itemsOrder, limitExpected, listInputItems, orderExpected } from './response-input-items.ts';
import { idOf } from './response-ids.ts';
import { joinCalls } from './response-items.ts';
import { type ResponseConversation, conversationOf, type ShownResponse, shownOf } from './response-view.ts';
import {
  inputGone,
  notInBackground,
  numberExpected,
  responseOpen,
  responsesDocuments as documents,
  startingAfter,
  streamExpected,
  streamQuery,
} from './responses-document.ts';
import { parseResponsesBody, type ResponsesBody, responsesName } from './responses-schema.ts';
import { streamResponse } from './stream-response.ts';

/** Maximum time that a cancellation waits for the current step to end, ms. */
const cancelMs = 5000;

export const responsesRoutes: readonly Route[] = routesOf(documents, {
  async create(c, context) {
    const body = parseResponsesBody(await readJsonBody(c, context.config.maxBodyBytes));
    const submission = submissionOf(context, body, c.get('owner'));
    return withClientFieldNames(responsesName, () => answer(c, context, submission, body));
  },
  async get(c, context) {
    const isStream = checkField(streamQuery, 'stream', c.req.query('stream') ?? 'false', streamExpected) === 'true';
    const given = c.req.query('starting_after');
    const after = given === undefined ? -1 : Number(checkField(startingAfter, 'starting_after', given, numberExpected));
    if (!isStream) {
      if (given !== undefined) throw invalidField('starting_after', given, 'none without stream=true');
      return c.json((await readResponse(context, await findResponse(c, context))).response, 200);
    }
    return streamResponse(c, context, async () => ({ request: await findResponse(c, context), after }));
  },
  async inputItems(c, context) {
    const { limit, order, after } = c.req.query();
    const page = {
      ...(limit !== undefined && { limit: checkField(itemsLimit, 'limit', limit, limitExpected) }),
      ...(order !== undefined && { order: checkField(itemsOrder, 'order', order, orderExpected) }),
      ...(after !== undefined && { after }),
    };
    const request = await findResponse(c, context);
    const conversation = conversationOf(request);
    if (conversation === undefined) throw inputGone(request.id);
    return c.json(listInputItems(conversation.messages, page), 200);
  },
  async inputTokens(c, context) {
    const body = parseResponsesBody(await readJsonBody(c, context.config.maxBodyBytes));
    const submission = submissionOf(context, body, c.get('owner'));
    const input = await withClientFieldNames(responsesName, () => resolveSubmission(c, context, submission));
    if (isForUpstream(input as StoredTextInput))
      throw invalidField(
        'model',
        (body.rest as { model?: unknown }).model,
        'a model that runs on this server: tokens of upstream models cannot be counted',
      );
    const { prompt } = input as TextInput;
    return c.json({ object: 'response.input_tokens', input_tokens: prompt.length }, 200);
  },
  async cancel(c, context) {
    const request = await findResponse(c, context);
    if (shownOf(request)?.background !== true) throw notInBackground(request.id);
    await cancelFound(c, context, request.id);
    await awaitEnd(c, context, request.id, cancelMs);
    return c.json((await readResponse(context, request)).response, 200);
  },
  async remove(c, context) {
    const { id } = await findResponse(c, context);
    const dropped = await context.withStore((store) => dropRequest(store, id, { only: terminalStates }));
    const result = present(id, dropped);
    if (result.status === 'not-dead') throw responseOpen(id, result.state);
    return c.json({ id: idOf('response', id), object: 'response', deleted: true }, 200);
  },
});

/** Converts a body to the submission of a text request. Throws 400 for an invalid input. */
function submissionOf(context: ApiContext, { stream: _stream, ...fields }: ResponsesBody, owner: string): Submission {
  const { input, instructions, previousResponseId, maxOutputTokens, rest } = fields;
  const items = parseInput(input);
  const shown: ShownResponse = {
    ...fields.shown,
    route: 'responses',
    maxOutputTokens: maxOutputTokens ?? null,
    previousResponseId: previousResponseId ?? null,
  };
  const conversation: ResponseConversation = {
    instructions: instructions ?? null,
    metadata: fields.metadata,
    messages: [],
  };
  async function makeBody(): Promise<object> {
    const [before, now] = await Promise.all([
      previousResponseId === undefined
        ? []
        : readConversation(context, { id: previousResponseId, owner, field: 'previous_response_id' }),
      resolveReferences(context, items, owner),
    ]);
    conversation.messages = joinCalls([...before, ...now]);
    const system = instructions === undefined ? [] : [{ role: 'system', content: instructions }];
    return {
      ...rest,
      messages: [...system, ...conversation.messages],
      ...(maxOutputTokens !== undefined && { max_tokens: maxOutputTokens }),
    };
  }
  return {
    // `stream` is not part of the fingerprint: the same response can be streamed or not.
    lazyBody: { fingerprint: fields, build: makeBody },
    kind: textKind.id,
    refine: (made) => ({
      ...(made as StoredTextInput | UpstreamTextInput),
      shown,
      said: withStoredImages(conversation, made),
    }),
  };
}

/** Returns the conversation with the names of stored images in place of what the client sent. */
function withStoredImages(conversation: ResponseConversation, made: unknown): ResponseConversation {
  const { params, images } = made as Partial<UpstreamTextInput>;
  if (images === undefined) return conversation;
  const instructions = conversation.instructions === null ? 0 : 1;
  return { ...conversation, messages: params!.messages!.slice(instructions) };
}

async function answer(
  c: ApiCall,
  context: ApiContext,
  submission: Submission,
  { stream, shown: { background } }: ResponsesBody,
): Promise<Response> {
  if (stream)
    return streamResponse(c, context, async () => {
      if (background) return { request: await submit(c, context, submission), after: -1 };
      const { submitted, watch } = await submitWatched(c, context, submission);
      return { request: submitted, after: -1, watch };
    });
  if (background) return c.json(await startInBackground(c, context, submission), 200);
  return answerStored(c, context, submission, (request, watch) => awaitResponse(context, request, watch));
}

async function submit(c: ApiCall, context: ApiContext, submission: Submission): Promise<SubmittedRequest> {
  const submitted = await submitRequest(c, context, submission);
  c.header('X-Request-Id', submitted.id);
  return submitted;
}

async function startInBackground(c: ApiCall, context: ApiContext, submission: Submission): Promise<object> {
  const submitted = await submit(c, context, submission);
  const reader = submitted.isReplayed ? await onceStored(() => readResponse(context, submitted)) : undefined;
  return (reader ?? new ResponseReader(submitted)).response;
}

/** Waits until the response has ended. */
async function awaitResponse(context: ApiContext, request: SubmittedRequest, watch: ClientWatch): Promise<object> {
  const reader = new ResponseReader(request);
  const events = followStored(context, request.id, watch, (event) => reader.read(event));
  // Consume all events: the reader keeps the state.
  while ((await events.next()).done !== true);
  return reader.response;
}
