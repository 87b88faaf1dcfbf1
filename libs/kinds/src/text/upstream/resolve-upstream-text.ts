import type { ResolveResult } from '../../kind.ts';
import { type RequestOptions, requestFields } from '../../request-fields.ts';
import { resolveBody } from '../../resolve-body.ts';
import { modeProblems, vocabularyProblems } from '../resolve-text.ts';
import { foreignTextFields, type TextRequest, textSchema } from '../text-schema.ts';
import { upstreamCalls, upstreamFormProblems } from './upstream-form.ts';
import { countedTokens, type TextAsk, type UpstreamTextCard, type UpstreamTextInput } from './upstream-text.ts';

/** Checks a body as far as that can be done without the model. Its length is for the server to judge, which counts its tokens. */
export function resolveUpstreamText(
  body: unknown,
  card: UpstreamTextCard,
  options: RequestOptions,
): ResolveResult<UpstreamTextInput> {
  return resolveBody(body, {
    schema: textSchema,
    options,
    foreignNames: foreignTextFields,
    problemsOf: (request) => [
      ...modeProblems(request, card),
      ...vocabularyProblems(request, card),
      ...upstreamFormProblems(request, card),
    ],
    inputOf: (request) => ({
      asked: askOf(request),
      n: request.n ?? 1,
      seed: request.seed ?? options.drawSeed(),
      maxTokens: request.max_tokens ?? Math.min(countedTokens, card.maxModelTokens ?? countedTokens),
      ...(request.logprobs === true && { logprobs: request.top_logprobs ?? 0 }),
      ...upstreamCalls(request, card),
    }),
  });
}

function askOf(request: TextRequest): TextAsk {
  const others = ['n', 'seed', ...Object.keys(requestFields)];
  return Object.fromEntries(
    Object.entries(request).filter(([name, value]) => value !== undefined && !others.includes(name)),
  );
}
