/** OpenAI's responses: a view of requests for text, whose events can be read again from any of them (docs of `/v1/responses`). */
import { terminalStates } from '@darkroom/core';
import { type TextInput, text as textKind } from '@darkroom/kinds';
import { dropRequest } from '@darkroom/store';
import type { ApiContext } from '../context.ts';
import { inTheirNames } from '../drop-in/their-names.ts';
import { awaitEnd } from '../follow/await-end.ts';
import { cancelFound, present } from '../follow/find-request.ts';
import type { ApiCall } from '../http/api-env.ts';
import { checkField, invalidField } from '../http/api-error.ts';
import { type Route, routesOf } from '../http/api-route.ts';
import { readJsonBody } from '../http/read-json-body.ts';
import { answerStored, submitWatched } from '../follow/answer-stored.ts';
import { followStored } from '../follow/follow-stored.ts';
import type { ClientWatch } from '../follow/watch-client.ts';
import { onceStored, type Submission, type SubmittedRequest, submitRequest } from '../submit/submit-request.ts';
import { findResponse, readConversation, readResponse, resolveReferences } from './find-response.ts';
import { ResponseReader } from './response-events.ts';
import { parseInput } from './response-input.ts';
import { idOf } from './response-ids.ts';
import { joinCalls } from './response-items.ts';
import type { SaidResponse, ShownResponse } from './response-view.ts';
import {
  numberExpected,
  responseOpen,
  responsesDocuments as documents,
  startingAfter,
  streamExpected,
  streamQuery,
} from './responses-document.ts';
import { parseResponsesBody, type ResponsesBody, responsesName } from './responses-schema.ts';
import { streamResponse, toAsync } from './stream-response.ts';

/** How long a cancellation waits for the step to end, ms. */
const cancelMs = 5000;

export const responsesRoutes: readonly Route[] = routesOf(documents, {
  async create(c, context) {
    const body = parseResponsesBody(await readJsonBody(c, context.config.maxBodyBytes));
    const submission = submissionOf(context, body, c.get('owner'));
    return inTheirNames(responsesName, () => answer(c, context, submission, body));
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
  async cancel(c, context) {
    const request = await findResponse(c, context);
    await cancelFound(c, context, request.id);
    await awaitEnd(c, context, request.id, cancelMs);
    return c.json((await readResponse(context, request)).response, 200);
  },
  async remove(c, context) {
    const { id } = await findResponse(c, context);
    const dropped = await context.askStore((store) => dropRequest(store, id, { only: terminalStates }));
    const result = present(id, dropped);
    if (result.status === 'not-dead') throw responseOpen(id, result.state);
    return c.json({ id: idOf('response', id), object: 'response', deleted: true }, 200);
  },
});

/** What it comes to as a request for text. Throws 400 for what is no input. */
function submissionOf(context: ApiContext, { stream: _stream, ...asked }: ResponsesBody, owner: string): Submission {
  const { input, instructions, previousResponseId, maxOutputTokens, rest } = asked;
  const items = parseInput(input);
  const shown: ShownResponse = {
    ...asked.shown,
    route: 'responses',
    maxOutputTokens: maxOutputTokens ?? null,
    previousResponseId: previousResponseId ?? null,
  };
  const said: SaidResponse = { instructions: instructions ?? null, messages: [] };
  async function makeBody(): Promise<object> {
    const [before, now] = await Promise.all([
      previousResponseId === undefined
        ? []
        : readConversation(context, { id: previousResponseId, owner, field: 'previous_response_id' }),
      resolveReferences(context, items, owner),
    ]);
    said.messages = joinCalls([...before, ...now]);
    const system = instructions === undefined ? [] : [{ role: 'system', content: instructions }];
    return {
      ...rest,
      messages: [...system, ...said.messages],
      ...(maxOutputTokens !== undefined && { max_tokens: maxOutputTokens }),
    };
  }
  return {
    // However it is answered, it is the same response.
    late: { asked, makeBody },
    kind: textKind.id,
    refine: (made): TextInput => ({ ...(made as TextInput), shown, said }),
  };
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
  return answerStored(c, context, submission, (request, watch) => wholeOf(context, request, watch));
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

/** Waits for all of it. */
async function wholeOf(context: ApiContext, request: SubmittedRequest, watch: ClientWatch): Promise<object> {
  const reader = new ResponseReader(request);
  const events = followStored(context, request.id, watch, (event) => toAsync(reader.read(event)));
  // Nothing is wanted of them but that they were read.
  while ((await events.next()).done !== true);
  return reader.response;
}
