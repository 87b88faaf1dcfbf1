import { DarkroomError, type FieldProblem } from '@darkroom/core';
import type { Grammars } from '../grammar/grammars.ts';
import type { TextConstraint } from '../text-input.ts';
import { type CallMarkup, triggerOf } from './call-markup.ts';
import { type TextForm, type Tool, toolsInUse } from './form-schema.ts';

type GrammarMaker = Pick<Grammars, 'ofSchema' | 'check'>;

/** What a text must be like to have a form; or what is wrong with the form. */
export type FormConstraint =
  | { readonly constraint: TextConstraint }
  | { readonly problems: readonly [FieldProblem, ...FieldProblem[]] };

/**
 * Makes the constraint of a form; undefined for one that asks for nothing.
 *
 * @param markup of the calls of the model; there is one for a form with tools in use.
 */
export async function constraintOf(
  form: TextForm,
  markup: CallMarkup | undefined,
  grammars: GrammarMaker,
): Promise<FormConstraint | undefined> {
  const { response_format: format, grammar } = form;
  if (grammar !== undefined) {
    const constraint = { type: 'grammar', grammar };
    const problem = await problemIn('grammar', () => grammars.check(constraint));
    return problem === undefined ? { constraint } : { problems: [problem] };
  }
  if (format?.type === 'json_object') return ofSchema({ type: 'object' }, 'response_format', grammars);
  if (format?.type === 'json_schema')
    return ofSchema(format.json_schema.schema, 'response_format.json_schema.schema', grammars);
  const tools = toolsInUse(form);
  if (tools === undefined || markup === undefined) return undefined;
  return ofTools(tools, form, markup, grammars);
}

async function ofSchema(schema: unknown, field: string, grammars: GrammarMaker): Promise<FormConstraint> {
  const made = await grammarOf(schema, field, grammars);
  return 'grammar' in made ? { constraint: { type: 'grammar', ...made } } : { problems: [made.problem] };
}

async function grammarOf(
  schema: unknown,
  field: string,
  grammars: Pick<GrammarMaker, 'ofSchema'>,
): Promise<{ grammar: string } | { problem: FieldProblem }> {
  let grammar = '';
  const problem = await problemIn(field, async () => {
    grammar = await grammars.ofSchema(schema);
  });
  return problem === undefined ? { grammar } : { problem };
}

/** What cannot be done is said of `$`, which is the field here. */
async function problemIn(field: string, work: () => Promise<void>): Promise<FieldProblem | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (!DarkroomError.isInstance(error) || error.code !== 'invalid_request') throw error;
    const { message } = error;
    const told = message.startsWith('$') ? `${field}${message.slice(1)}` : `${field}: ${message}`;
    return { field, code: 'invalid_value', message: told };
  }
}

/** What arguments of each of these tools keep to. */
export async function argumentGrammars(
  tools: readonly Tool[],
  grammars: Pick<GrammarMaker, 'ofSchema'>,
): Promise<{ grammars: string[] } | { problems: [FieldProblem, ...FieldProblem[]] }> {
  const made = await Promise.all(
    tools.map(({ function: { parameters } }, at) =>
      grammarOf(parameters ?? noParameters, `tools.${at}.function.parameters`, grammars),
    ),
  );
  const [problem, ...problems] = made.flatMap((each) => ('problem' in each ? [each.problem] : []));
  if (problem !== undefined) return { problems: [problem, ...problems] };
  return { grammars: made.flatMap((each) => ('grammar' in each ? [each.grammar] : [])) };
}

async function ofTools(
  tools: readonly Tool[],
  { tool_choice: choice = 'auto', parallel_tool_calls: parallel = true }: TextForm,
  markup: CallMarkup,
  grammars: GrammarMaker,
): Promise<FormConstraint> {
  const made = await argumentGrammars(tools, grammars);
  if ('problems' in made) return made;
  const named = typeof choice === 'object' ? choice.function.name : undefined;
  const tags = tools.flatMap(({ function: { name } }, at) =>
    named === undefined || named === name
      ? [tagOf(name, { type: 'grammar', grammar: made.grammars[at]! }, markup)]
      : [],
  );
  const isOne = !parallel || named !== undefined || markup.separator === undefined;
  return { constraint: choice === 'auto' ? ifCalled(tags, markup, isOne) : listOf(tags, markup, isOne) };
}

const noParameters = { type: 'object', properties: {}, additionalProperties: false };

interface Tag extends TextConstraint {
  begin: string;
}

/** A call of a tool. */
function tagOf(name: string, content: TextConstraint, { begin, middle, end }: CallMarkup): Tag {
  return { type: 'tag', begin: begin + name + middle, content, end };
}

/** Text; and from where a call begins, the call. */
function ifCalled(tags: readonly Tag[], markup: CallMarkup, isOne: boolean): TextConstraint {
  return {
    type: 'triggered_tags',
    triggers: [triggerOf(markup)],
    tags: markup.open === '' ? tags : [listOf(tags, markup, isOne)],
    at_least_one: false,
    stop_after_first: isOne || markup.open !== '',
  };
}

/** Calls, and nothing else. */
function listOf(tags: readonly Tag[], { open, separator = '', close }: CallMarkup, isOne: boolean): TextConstraint {
  const calls = {
    type: 'tags_with_separator',
    tags,
    // xgrammar has no separator of nothing: where calls follow each other at once, there is one.
    separator: separator || ' ',
    at_least_one: true,
    stop_after_first: isOne || separator === '',
  };
  return open === '' ? calls : { type: 'tag', begin: open, content: calls, end: close };
}
