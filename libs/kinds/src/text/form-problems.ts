import { type FieldProblem, invalidValue } from '@darkroom/core';
import type { TextCodec } from './codec/text-codec.ts';
import type { TextCard } from './form/text-input.ts';
import type { UpstreamTextCard } from './upstream-text.ts';
import { formOf, mustCall, type TextForm, toolsInUse, exclusiveFormsIn } from './form/form-schema.ts';

type FormRequest = TextForm & {
  ignore_eos?: boolean | undefined;
  messages?: readonly { tool_calls?: readonly unknown[] | null | undefined }[] | undefined;
};

type ModelInfo = Pick<TextCard | UpstreamTextCard, 'id' | 'block'>;

/** Returns problems with form fields that exclude or require each other or that this model does not support. */
export function formProblems(request: FormRequest, card: ModelInfo, calls: TextCodec['calls']): FieldProblem[] {
  const form = formOf(request) ?? {};
  const problems = [...toolProblems(request), ...earlierCallProblems(request, card, calls)];
  const [whole, ...others] = exclusiveFormsIn(form);
  for (const field of others) problems.push(invalidValue(field, form[field], `nothing beside ${whole}`));
  const hasTools = toolsInUse(form) !== undefined;
  if (whole === 'regex' && hasTools) problems.push(invalidValue(whole, form[whole], 'nothing beside tools'));
  const first = whole ?? (hasTools ? 'tools' : undefined);
  if (first === undefined) return problems;
  if (card.block !== undefined)
    problems.push(
      invalidValue(first, form[first], `nothing: ${card.id} writes several tokens at once, and keeps to no form`),
    );
  else if (hasTools && 'reason' in calls)
    problems.push(invalidValue('tools', form.tools, `nothing: ${card.id} calls none, for ${calls.reason}`));
  if (request.ignore_eos === true)
    problems.push(
      invalidValue('ignore_eos', true, `false beside ${first}: an answer in a form ends where the form does`),
    );
  return problems;
}

/** Returns the problem of earlier tool calls that the model's template would not show. */
function earlierCallProblems(
  { messages = [] }: FormRequest,
  card: ModelInfo,
  calls: TextCodec['calls'],
): FieldProblem[] {
  const at = messages.findIndex(({ tool_calls: made }) => made != null && made.length > 0);
  if (at < 0 || 'markup' in calls) return [];
  const { tool_calls: made } = messages[at]!;
  return [invalidValue(`messages.${at}.tool_calls`, made, `nothing: ${card.id} calls no tools, for ${calls.reason}`)];
}

function toolProblems({ tools = [], tool_choice: choice }: TextForm): FieldProblem[] {
  const names = tools.map((tool) => tool.function.name);
  if (names.length === 0)
    return mustCall({ tool_choice: choice }) ? [invalidValue('tool_choice', choice, 'auto or none without tools')] : [];
  const problems: FieldProblem[] = [];
  for (const [at, name] of names.entries())
    if (names.indexOf(name) < at)
      problems.push(invalidValue(`tools.${at}.function.name`, name, 'a name that no other tool has'));
  if (typeof choice === 'object' && !names.includes(choice.function.name))
    problems.push(
      invalidValue('tool_choice.function.name', choice.function.name, `the name of one of tools: ${names.join(', ')}`),
    );
  return problems;
}
