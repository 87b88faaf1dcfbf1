/** What an answer must be like and which functions it may call, in OpenAI's words for responses and in ours. */
import { invalidValue, type FieldProblem } from '@darkroom/core';
import type { TextForm } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';

const formatExpected = 'an object such as {"type": "json_schema", "name", "schema"}';
const toolsExpected = 'a list of functions {"type": "function", "name", "parameters"}';
const choiceExpected = 'auto, none, required, or {"type": "function", "name"}';
const onlyFunctions = z.literal('function', { error: '"function": there are no other tools here' });

/** What is checked here is what has another shape there; the rest is for who knows the model. */
export const formFields = {
  text: z
    .looseObject(
      { format: z.looseObject({ type: z.string({ error: 'text' }) }, { error: formatExpected }).nullish() },
      { error: 'an object' },
    )
    .optional()
    .openapi({
      description:
        '`format` is what every answer keeps to: {"type": "text"}, {"type": "json_object"} or {"type": "json_schema", "name", "schema"}. Default: text.',
    }),
  tools: z
    .array(z.looseObject({ type: onlyFunctions }, { error: 'a function {"type": "function", "name", "parameters"}' }), {
      error: toolsExpected,
    })
    .optional()
    .openapi({
      description: `What the model may call: ${toolsExpected}, with arguments that keep to \`parameters\`. For models with \`has_tools\`.`,
    }),
  tool_choice: z
    .union([z.enum(['auto', 'none', 'required']), z.looseObject({ type: onlyFunctions, name: z.string() })], {
      error: choiceExpected,
    })
    .optional()
    .openapi({ description: 'Whether it may call functions, must not, must, or must call this one. Default: auto.' }),
  parallel_tool_calls: z
    .boolean({ error: 'true or false' })
    .optional()
    .openapi({ description: 'Whether one answer may have several calls. Default: true.' }),
};

type FormFields = z.infer<z.ZodObject<typeof formFields>>;

/** In our words. */
export function ourForm({ text, tools = [], tool_choice: choice, parallel_tool_calls: parallel }: FormFields) {
  const { format } = text ?? {};
  const hasTools = tools.length > 0;
  return {
    ...(format != null && { response_format: ourFormat(format) }),
    // OpenAI's clients say how tools are to be called where there are none, too.
    ...(hasTools && {
      tools: tools.map(({ type, ...definition }) => ({ type, function: definition })),
      ...(choice !== undefined && { tool_choice: ourChoice(choice) }),
      ...(parallel !== undefined && { parallel_tool_calls: parallel }),
    }),
  };
}

function ourFormat({ type, ...more }: { type: string; [field: string]: unknown }) {
  return type === 'json_schema' ? { type, json_schema: more } : { type };
}

function ourChoice(choice: NonNullable<FormFields['tool_choice']>) {
  return typeof choice === 'string' ? choice : { type: choice.type, function: { name: choice.name } };
}

/** A choice among no tools, where it would change something. */
export function choiceProblems({ tools = [], tool_choice: choice }: FormFields): FieldProblem[] {
  const isPlain = choice === undefined || choice === 'auto' || choice === 'none';
  return tools.length > 0 || isPlain ? [] : [invalidValue('tool_choice', choice, 'auto or none without tools')];
}

/** How our fields are called here. */
export function formFieldName(field: string): string {
  return field
    .replace(/^response_format\.json_schema\b|^response_format\b/, 'text.format')
    .replace(/^(tools\.\d+|tool_choice)\.function\b/, '$1');
}

export const formatSchema = z.union([
  z.strictObject({ type: z.enum(['text', 'json_object']) }),
  z.looseObject({ type: z.literal('json_schema'), schema: z.looseObject({}) }),
]);

export function formatView(form: TextForm | undefined): z.infer<typeof formatSchema> {
  const format = form?.response_format ?? { type: 'text' };
  return format.type === 'json_schema' ? { type: format.type, ...format.json_schema } : { type: format.type };
}

export const toolSchema = z.looseObject({ type: z.literal('function'), name: z.string() });

export function toolViews(form: TextForm | undefined): z.infer<typeof toolSchema>[] {
  const none = { description: null, parameters: null, strict: null };
  return (form?.tools ?? []).map((tool) => ({ type: 'function', ...none, ...tool.function }));
}

export const choiceSchema = z.union([
  z.enum(['auto', 'none', 'required']),
  z.looseObject({ type: z.literal('function'), name: z.string() }),
]);

export function choiceView(form: TextForm | undefined): z.infer<typeof choiceSchema> {
  const choice = form?.tool_choice ?? 'auto';
  return typeof choice === 'string' ? choice : { type: 'function', name: choice.function.name };
}
