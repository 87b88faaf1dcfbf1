/** Output formats and tools of upstream models: forwarded if the server supports them. */
import { type FieldProblem, invalidValue } from '@darkroom/core';
import { formProblems } from './form-problems.ts';
import { formOf, toolsInUse } from './form/form-schema.ts';
import type { TextBody } from './text-schema.ts';
import type { UpstreamTextCard, UpstreamTextInput } from './upstream-text.ts';

const noCalls = { reason: 'its server has no tools' };

export function upstreamFormProblems(request: TextBody, card: UpstreamTextCard): FieldProblem[] {
  const { prompt, grammar, regex, response_format: format } = request;
  const problems = formProblems(request, card, card.calls ?? noCalls);
  if (grammar !== undefined && card.takesGrammar !== true)
    problems.push(
      invalidValue('grammar', grammar, `nothing: the server of ${card.id} has no such field, send response_format`),
    );
  if (regex !== undefined)
    problems.push(invalidValue('regex', regex, `nothing: the server of ${card.id} has no such field`));
  if (prompt === undefined) return problems;
  if (toolsInUse(request) !== undefined)
    problems.push(invalidValue('tools', request.tools, 'nothing beside prompt: tools go with messages'));
  if (formOf({ response_format: format }) !== undefined && card.takesFormatOfPrompt !== true)
    problems.push(
      invalidValue('response_format', format, `nothing beside prompt: the server of ${card.id} takes it with messages`),
    );
  return problems;
}

/** Returns the markup of tool calls in the text, if the request has tools. */
export function upstreamCalls(request: TextBody, { calls }: UpstreamTextCard): Pick<UpstreamTextInput, 'callMarkup'> {
  const hasCalls = toolsInUse(request) !== undefined && calls !== undefined && 'markup' in calls;
  return hasCalls ? { callMarkup: calls.markup } : {};
}
