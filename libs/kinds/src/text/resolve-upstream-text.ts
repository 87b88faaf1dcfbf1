import type { ResolveResult } from '../request/kind.ts';
import { ignoredFields, type RequestPolicy, requestFields } from '../request/request-fields.ts';
import { resolveBody } from '../request/resolve-body.ts';
import { sizeProblems } from './form/text-limits.ts';
import { modeProblems, vocabularyProblems } from './resolve-text.ts';
import { foreignTextFields, seedOf, type TextBody, textSchema } from './text-schema.ts';
import { upstreamCalls, upstreamFormProblems } from './upstream-form.ts';
import {
  estimatedTokens,
  type UpstreamTextParams,
  type UpstreamTextCard,
  type UpstreamTextInput,
} from './upstream-text.ts';

/** Validates a body without the model. Only the upstream server counts tokens, so it checks the length. */
export function resolveUpstreamText(
  body: unknown,
  card: UpstreamTextCard,
  options: RequestPolicy,
): ResolveResult<UpstreamTextInput> {
  const tooLarge = sizeProblems(body);
  if (tooLarge.length > 0) return { status: 'invalid', problems: tooLarge };
  return resolveBody(body, {
    schema: textSchema,
    options,
    compatNames: foreignTextFields,
    problemsOf: (request) => [
      ...modeProblems(request, card),
      ...vocabularyProblems(request, card),
      ...upstreamFormProblems(request, card),
    ],
    inputOf: (request) => ({
      params: forwardedFields(request),
      n: request.n ?? 1,
      seed: seedOf(request.seed) ?? options.drawSeed(),
      maxTokens: request.max_tokens ?? Math.min(estimatedTokens, card.maxModelTokens ?? estimatedTokens),
      ...(request.logprobs === true && { logprobs: request.top_logprobs ?? 0 }),
      ...upstreamCalls(request, card),
    }),
  });
}

function forwardedFields(request: TextBody): UpstreamTextParams {
  const noTools = (request.tools ?? []).length === 0 ? ['tools', 'tool_choice', 'parallel_tool_calls'] : [];
  const others = ['n', 'seed', ...noTools, ...Object.keys(requestFields), ...Object.keys(ignoredFields)];
  return Object.fromEntries(
    Object.entries(request).filter(([name, value]) => value !== undefined && !others.includes(name)),
  );
}
