import { DarkroomError, type FieldProblem } from '@darkroom/core';
import type { GrammarChecks } from './grammar/grammar-checks.ts';
import type { TextConstraint } from './form/text-input.ts';
import { type CallMarkup, triggerOf } from './form/call-markup.ts';
import { mustCall, type TextForm, type Tool, toolsInUse } from './form/form-schema.ts';

/** Grammar checks, and the owner of the request: owners take turns. */
export interface ConstraintChecks {
  readonly checks: Pick<GrammarChecks, 'check'>;
  readonly owner: string;
}

/** The constraint of a form, or the problems of the form. */
export type FormConstraint =
  | { readonly constraint: TextConstraint }
  | { readonly problems: readonly [FieldProblem, ...FieldProblem[]] };

/**
 * Builds the constraint of a form; returns undefined for a form without constraints.
 *
 * @param markup markup of the model's tool calls; required if the form has tools in use.
 */
export async function constraintOf(
  form: TextForm,
  markup: CallMarkup | undefined,
  by: ConstraintChecks,
): Promise<FormConstraint | undefined> {
  const whole = await exclusiveFormConstraint(form, by);
  const tools = toolsInUse(form);
  if (tools === undefined || markup === undefined || (whole !== undefined && 'problems' in whole)) return whole;
  if (whole === undefined || mustCall(form)) return toolsConstraint(tools, form, { markup, by });
  return toolsConstraint(tools, form, { markup, by, whole: whole.constraint });
}

/** Returns the constraint of a text without tool calls; undefined if any text is allowed. */
async function exclusiveFormConstraint(
  { response_format: format, grammar, regex }: TextForm,
  by: ConstraintChecks,
): Promise<FormConstraint | undefined> {
  if (grammar !== undefined) return checkConstraint({ type: 'grammar', grammar }, 'grammar', by);
  if (regex !== undefined) return checkConstraint({ type: 'regex', pattern: regex }, 'regex', by);
  if (format?.type === 'json_object')
    return checkConstraint(schemaConstraint({ type: 'object' }), 'response_format', by);
  if (format?.type === 'json_schema')
    return checkConstraint(schemaConstraint(format.json_schema.schema), 'response_format.json_schema.schema', by);
  return undefined;
}

function schemaConstraint(schema: unknown): TextConstraint {
  return { type: 'json_schema', json_schema: schema };
}

/**
 * Checks a constraint; returns it as requests store it, or its problem, with `$`, the root of the schema, replaced by
 * the field.
 */
async function checkConstraint(
  constraint: TextConstraint,
  field: string,
  { checks, owner }: ConstraintChecks,
): Promise<FormConstraint> {
  try {
    return { constraint: await checks.check(constraint, owner) };
  } catch (error) {
    if (!DarkroomError.isInstance(error) || error.code !== 'invalid_request') throw error;
    const { message } = error;
    const shown = message.startsWith('$') ? `${field}${message.slice(1)}` : `${field}: ${message}`;
    return { problems: [{ field, code: 'invalid_value', message: shown }] };
  }
}

async function toolsConstraint(
  tools: readonly Tool[],
  { tool_choice: choice = 'auto', parallel_tool_calls: parallel = true }: TextForm,
  { markup, by, whole }: { markup: CallMarkup; by: ConstraintChecks; whole?: TextConstraint },
): Promise<FormConstraint> {
  const problems: FieldProblem[] = [];
  for (const [at, { function: tool }] of tools.entries()) {
    const schema = schemaConstraint(tool.parameters ?? noParameters);
    const checked = await checkConstraint(schema, `tools.${at}.function.parameters`, by);
    if ('problems' in checked) problems.push(...checked.problems);
  }
  const [first, ...others] = problems;
  if (first !== undefined) return { problems: [first, ...others] };
  const named = typeof choice === 'object' ? choice.function.name : undefined;
  const tags = tools.flatMap(({ function: { name, parameters } }) =>
    named === undefined || named === name ? [tagOf(name, schemaConstraint(parameters ?? noParameters), markup)] : [],
  );
  const isOne = !parallel || named !== undefined || markup.separator === undefined;
  const list = listOf(tags, markup, isOne);
  if (whole !== undefined) return checkConstraint({ type: 'or', elements: [list, whole] }, 'tools', by);
  return checkConstraint(choice === 'auto' ? textWithCalls(tags, markup, isOne) : list, 'tools', by);
}

const noParameters = { type: 'object', properties: {}, additionalProperties: false };

type Tag = Extract<TextConstraint, { type: 'tag' }>;
type TagList = Extract<TextConstraint, { type: 'tags_with_separator' }>;

/** Returns the tag of a tool call. */
function tagOf(name: string, content: TextConstraint, { begin, middle, end }: CallMarkup): Tag {
  return { type: 'tag', begin: begin + name + middle, content, end };
}

/** Returns the constraint of text with optional calls. */
function textWithCalls(tags: readonly Tag[], markup: CallMarkup, isOne: boolean): TextConstraint {
  return {
    type: 'triggered_tags',
    trigger: triggerOf(markup),
    tags: markup.open === '' ? tags : [listOf(tags, markup, isOne) as Tag],
    stop_after_first: isOne || markup.open !== '',
  };
}

/** Returns the constraint of calls without other text. */
function listOf(tags: readonly Tag[], { open, separator = '', close }: CallMarkup, isOne: boolean): Tag | TagList {
  const calls: TagList = {
    type: 'tags_with_separator',
    tags,
    separator,
    stop_after_first: isOne,
  };
  return open === '' ? calls : { type: 'tag', begin: open, content: calls, end: close };
}
