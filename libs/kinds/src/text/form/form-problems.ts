import { type FieldProblem, invalidValue } from '@darkroom/core';
import type { TextCodec } from '../codec/text-codec.ts';
import type { TextCard } from '../text-card.ts';
import type { UpstreamTextCard } from '../upstream/upstream-text.ts';
import { formOf, type TextForm, toolsInUse } from './form-schema.ts';

type Asked = TextForm & {
  ignore_eos?: boolean | undefined;
  messages?: readonly { tool_calls?: readonly unknown[] | null | undefined }[] | undefined;
};

type Caller = Pick<TextCard | UpstreamTextCard, 'id' | 'block'>;

/** What goes together only, and what this model cannot do. */
export function formProblems(request: Asked, card: Caller, calls: TextCodec['calls']): FieldProblem[] {
  const form = formOf(request) ?? {};
  const problems = [...toolProblems(form), ...saidProblems(request, card, calls)];
  const held = heldBy(form);
  const [first, ...others] = held;
  if (first === undefined) return problems;
  for (const field of others) problems.push(invalidValue(field, form[field], `nothing beside ${first}`));
  if (card.block !== undefined)
    problems.push(
      invalidValue(first, form[first], `nothing: ${card.id} writes several tokens at once, and keeps to no form`),
    );
  else if (form.tools !== undefined && held.includes('tools') && 'reason' in calls)
    problems.push(invalidValue('tools', form.tools, `nothing: ${card.id} calls none, for ${calls.reason}`));
  if (request.ignore_eos === true)
    problems.push(
      invalidValue('ignore_eos', true, `false beside ${first}: an answer in a form ends where the form does`),
    );
  return problems;
}

/** Calls that were made by another model: this one would not be shown them. */
function saidProblems({ messages = [] }: Asked, card: Caller, calls: TextCodec['calls']): FieldProblem[] {
  const at = messages.findIndex(({ tool_calls: made }) => made != null && made.length > 0);
  if (at < 0 || 'markup' in calls) return [];
  const { tool_calls: made } = messages[at]!;
  return [invalidValue(`messages.${at}.tool_calls`, made, `nothing: ${card.id} calls no tools, for ${calls.reason}`)];
}

/** The fields that say what an answer is like. */
function heldBy(form: TextForm): ('response_format' | 'grammar' | 'tools')[] {
  const tools = toolsInUse(form);
  return (['response_format', 'grammar', 'tools'] as const).filter((field) =>
    field === 'tools' ? tools !== undefined : form[field] !== undefined,
  );
}

function toolProblems({ tools, tool_choice: choice, parallel_tool_calls: parallel }: TextForm): FieldProblem[] {
  const without = 'nothing without tools';
  if (tools === undefined)
    return [
      ...(choice === undefined ? [] : [invalidValue('tool_choice', choice, without)]),
      ...(parallel === undefined ? [] : [invalidValue('parallel_tool_calls', parallel, without)]),
    ];
  const problems: FieldProblem[] = [];
  const names = tools.map((tool) => tool.function.name);
  for (const [at, name] of names.entries())
    if (names.indexOf(name) < at)
      problems.push(invalidValue(`tools.${at}.function.name`, name, 'a name that no other tool has'));
  if (typeof choice === 'object' && !names.includes(choice.function.name))
    problems.push(
      invalidValue('tool_choice.function.name', choice.function.name, `the name of one of tools: ${names.join(', ')}`),
    );
  return problems;
}
