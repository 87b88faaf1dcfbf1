/** Answers to several prompts, each a separate request; also `echo` and `max_tokens: 0` of `POST /v1/completions`. */
import { itemAt } from '@darkroom/core';
import { text as textKind } from '@darkroom/kinds';
import type { ApiContext } from '../../context/context.ts';
import { answerStored, streamStored, submitWatched } from '../../answer/answer-stored.ts';
import { sseFrame } from '../../follow/sse-frame.ts';
import type { ClientWatch } from '../../answer/watch-client.ts';
import type { ApiCall } from '../../http/api-env.ts';
import { invalidField } from '../../http/api-error.ts';
import type { SubmittedRequest } from '../../submit/submit-request.ts';
import { headOf, readChoices, type ParsedTextBody } from './answer-text.ts';
import { openaiUsage, type TextShape } from './text-shape.ts';

interface FollowedRequest {
  submitted: SubmittedRequest;
  watch: ClientWatch;
}

type Usage = ReturnType<typeof openaiUsage>;

export async function answerPrompts(
  c: ApiCall,
  context: ApiContext,
  parsed: ParsedTextBody,
  shape: TextShape,
): Promise<Response> {
  const { body, others = [] } = parsed;
  if (others.length > 0 && c.req.header('idempotency-key') !== undefined)
    throw invalidField('prompt', `${others.length + 1} prompts`, 'one prompt with an Idempotency-Key');
  const followed: FollowedRequest[] = [];
  const leaveAll = (): void => followed.forEach(({ watch }) => watch.leave());
  const submission = { body, kind: textKind.id };
  try {
    for (const other of others) followed.push(await submitWatched(c, context, { body: other, kind: textKind.id }));
    const buildAnswer = async (submitted: SubmittedRequest, watch: ClientWatch) => {
      const answer = await fullAnswerOf(context, shape, parsed, [{ submitted, watch }, ...followed]);
      for (const other of followed) other.watch.stop();
      return answer;
    };
    if (!parsed.isStream) return await answerStored(c, context, submission, buildAnswer);
    return await streamStored(
      c,
      context,
      submission,
      async function* (submitted, watch) {
        try {
          yield* framesOf(parsed, shape, await buildAnswer(submitted, watch));
        } finally {
          leaveAll();
        }
      },
      'chunks',
    );
  } catch (error) {
    leaveAll();
    throw error;
  }
}

type Answer = ReturnType<typeof headOf> & { choices: ({ index: number } & object)[]; usage: Usage };

async function fullAnswerOf(
  context: ApiContext,
  shape: TextShape,
  { echoes, isPromptOnly = false }: ParsedTextBody,
  all: readonly FollowedRequest[],
): Promise<Answer> {
  const parts = await Promise.all(all.map(({ submitted, watch }) => readChoices(context, shape, submitted, watch)));
  const choices = parts.flatMap((part, at) =>
    part.choices.map((choice) => withEcho(isPromptOnly ? emptyChoice(choice) : choice, echoes?.[at])),
  );
  const usages = parts
    .map(({ outputs }) => openaiUsage(outputs))
    .map((each) => (isPromptOnly ? withoutCompletion(each) : each));
  return {
    ...headOf(itemAt(all, 0).submitted, shape, shape.answerObject),
    choices: choices.map((choice, index) => ({ ...choice, index })),
    usage: usages.reduce(addUsage),
  };
}

function withEcho<Choice extends object>(choice: Choice, echo = ''): Choice {
  const { text } = choice as { text?: unknown };
  return typeof text === 'string' ? { ...choice, text: echo + text } : choice;
}

function emptyChoice<Choice extends object>(choice: Choice): Choice {
  return { ...choice, text: '', logprobs: null, finish_reason: 'length' };
}

function withoutCompletion(usage: Usage): Usage {
  return { ...usage, completion_tokens: 0, total_tokens: usage.prompt_tokens };
}

function addUsage(left: Usage, right: Usage): Usage {
  return {
    prompt_tokens: left.prompt_tokens + right.prompt_tokens,
    completion_tokens: left.completion_tokens + right.completion_tokens,
    total_tokens: left.total_tokens + right.total_tokens,
    prompt_tokens_details: {
      cached_tokens: left.prompt_tokens_details.cached_tokens + right.prompt_tokens_details.cached_tokens,
    },
    nfe: left.nfe + right.nfe,
  };
}

/** Yields each choice as one chunk, after all are complete. */
function* framesOf({ includesUsage }: ParsedTextBody, shape: TextShape, answer: Answer): Generator<string, void> {
  const { choices, usage, ...head } = answer;
  const frame = (part: readonly object[], used: object | null): string =>
    sseFrame({ data: { ...head, object: shape.chunkObject, choices: part, ...(includesUsage && { usage: used }) } });
  for (const choice of choices) yield frame([choice], null);
  if (includesUsage) yield frame([], usage);
}
