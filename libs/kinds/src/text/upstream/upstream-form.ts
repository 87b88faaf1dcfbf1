/** What an answer of another server's model must be like: it is forwarded, where that server can keep to it. */
import { type FieldProblem, invalidValue } from '@darkroom/core';
import type { ResolveResult } from '../../kind.ts';
import { argumentGrammars } from '../form/form-constraint.ts';
import { formProblems } from '../form/form-problems.ts';
import { formOf, toolsInUse } from '../form/form-schema.ts';
import type { Grammars } from '../grammar/grammars.ts';
import type { TextRequest } from '../text-schema.ts';
import { callGrammar } from './call-grammar.ts';
import type { UpstreamTextCard, UpstreamTextInput } from './upstream-text.ts';

const noCalls = { reason: 'its server has no tools' };

export function upstreamFormProblems(request: TextRequest, card: UpstreamTextCard): FieldProblem[] {
  const { prompt, grammar, response_format: format } = request;
  const problems = formProblems(request, card, card.calls ?? noCalls);
  if (grammar !== undefined && card.takesGrammar !== true)
    problems.push(
      invalidValue('grammar', grammar, `nothing: the server of ${card.id} has no such field, send response_format`),
    );
  if (prompt === undefined) return problems;
  if (request.tools !== undefined)
    problems.push(invalidValue('tools', request.tools, 'nothing beside prompt: tools go with messages'));
  if (formOf({ response_format: format }) !== undefined && card.takesFormatOfPrompt !== true)
    problems.push(
      invalidValue('response_format', format, `nothing beside prompt: the server of ${card.id} takes it with messages`),
    );
  return problems;
}

/** Where calls of tools will stand in its text. */
export function upstreamCalls(
  request: TextRequest,
  { calls }: UpstreamTextCard,
): Pick<UpstreamTextInput, 'callMarkup'> {
  const hasCalls = toolsInUse(request) !== undefined && calls !== undefined && 'markup' in calls;
  return hasCalls ? { callMarkup: calls.markup } : {};
}

/** With what keeps its calls to their tools, where its server does not do that by itself. */
export async function withCallGrammar(
  result: ResolveResult<UpstreamTextInput>,
  { callsByGrammar }: UpstreamTextCard,
  grammars: Grammars,
): Promise<ResolveResult<UpstreamTextInput>> {
  if (result.status === 'invalid' || callsByGrammar !== true) return result;
  const { input } = result.request;
  const { asked, callMarkup } = input;
  const tools = toolsInUse(asked);
  if (tools === undefined || callMarkup === undefined) return result;
  const made = await argumentGrammars(tools, grammars);
  if ('problems' in made) return { status: 'invalid', problems: made.problems };
  const { tool_choice: choice } = asked;
  const callable = tools
    .map(({ function: { name } }, at) => ({ name, grammar: made.grammars[at]! }))
    .filter(({ name }) => typeof choice !== 'object' || choice.function.name === name);
  const kept = { ...input, callGrammar: callGrammar(callable, asked, callMarkup) };
  return { status: 'resolved', request: { ...result.request, input: kept } };
}
