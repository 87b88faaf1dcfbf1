import type { ResolveResult } from '../request/kind.ts';
import { ignoredFields, type RequestPolicy, requestFields } from '../request/request-fields.ts';
import { mentionsImages } from './form/image-parts.ts';
import { withPlainContent } from './form/message-content.ts';
import { resolveTextBody } from './resolve-text.ts';
import { seedOf, type TextBody } from './text-schema.ts';
import { readImagesOf } from './text-images.ts';
import { upstreamCalls, upstreamFormProblems } from './upstream-form.ts';
import {
  estimatedTokens,
  type UpstreamTextParams,
  type UpstreamTextCard,
  type UpstreamTextInput,
} from './upstream-text.ts';

/** Validates a body without the model. Only the upstream server counts tokens, so it checks the length. */
export async function resolveUpstreamText(
  body: unknown,
  card: UpstreamTextCard,
  options: RequestPolicy,
): Promise<ResolveResult<UpstreamTextInput>> {
  const resolved = resolveTextBody(body, card, options, (request) => upstreamFormProblems(request, card));
  if (resolved.status === 'invalid') return resolved;
  const request = resolved.request.input;
  if (!mentionsImages(request)) {
    const { messages } = request;
    const plain = { ...request, messages: messages && withPlainContent(messages) };
    return { status: 'resolved', request: { ...resolved.request, input: inputOf(plain, card, options) } };
  }
  const images = await readImagesOf(request, options);
  if (images.status === 'invalid') return images;
  const { messages, attachments, sizes } = images;
  const input = { ...inputOf({ ...request, messages, prompt: undefined }, card, options), images: sizes };
  return { status: 'resolved', request: { ...resolved.request, input, attachments } };
}

function inputOf(request: TextBody, card: UpstreamTextCard, { drawSeed }: RequestPolicy): UpstreamTextInput {
  return {
    params: forwardedFields(request),
    n: request.n ?? 1,
    seed: seedOf(request.seed) ?? drawSeed(),
    maxTokens: request.max_tokens ?? Math.min(estimatedTokens, card.maxModelTokens ?? estimatedTokens),
    ...(request.logprobs === true && { logprobs: request.top_logprobs ?? 0 }),
    ...upstreamCalls(request, card),
  };
}

function forwardedFields(request: TextBody): UpstreamTextParams {
  const noTools = (request.tools ?? []).length === 0 ? ['tools', 'tool_choice', 'parallel_tool_calls'] : [];
  const others = ['n', 'seed', 'image', ...noTools, ...Object.keys(requestFields), ...Object.keys(ignoredFields)];
  return Object.fromEntries(
    Object.entries(request).filter(([name, value]) => value !== undefined && !others.includes(name)),
  );
}
