/** Converts output formats and tools between OpenAI's responses API and our fields. */
import { invalidValue, type FieldProblem } from '@darkroom/core';
import type { TextForm } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';

const formatExpected = 'an object such as {"type": "json_schema", "name", "schema"}';
const toolsExpected = 'a list of functions {"type": "function", "name", "parameters"}';
const choiceExpected = 'auto, none, required, or {"type": "function", "name"}';
const onlyFunctions = z.literal('function', { error: '"function": other tools are not supported' });

/** Checks only what is needed to convert the fields. `submitRequest` checks the result against the model. */
export const responseFormFields = {
  text: z
    .looseObject(
      { format: z.looseObject({ type: z.string({ error: 'text' }) }, { error: formatExpected }).nullish() },
      { error: 'an object' },
    )
    .optional()
    .openapi({
      description:
        '`format` is the output format: {"type": "text"}, {"type": "json_object"} or {"type": "json_schema", "name", "schema"}. Default: text.',
    }),
  tools: z
    .array(z.looseObject({ type: onlyFunctions }, { error: 'a function {"type": "function", "name", "parameters"}' }), {
      error: toolsExpected,
    })
    .optional()
    .openapi({
      description: `Functions that the model may call: ${toolsExpected}. Arguments conform to \`parameters\`. Only for models with \`has_tools\`.`,
    }),
  tool_choice: z
    .union([z.enum(['auto', 'none', 'required']), z.looseObject({ type: onlyFunctions, name: z.string() })], {
      error: choiceExpected,
    })
    .optional()
    .openapi({
      description: 'The model may, must not or must call functions, or must call the named one. Default: auto.',
    }),
  parallel_tool_calls: z
    .boolean({ error: 'true or false' })
    .optional()
    .openapi({ description: 'Allows several calls in one answer. Default: true.' }),
};

type FormFields = z.infer<z.ZodObject<typeof responseFormFields>>;

/** Converts OpenAI's fields to ours. */
export function toOurFormFields({ text, tools = [], tool_choice: choice, parallel_tool_calls: parallel }: FormFields) {
  const { format } = text ?? {};
  const hasTools = tools.length > 0;
  return {
    ...(format != null && { response_format: ourFormat(format) }),
    // Ignore the other fields without tools: OpenAI's clients always send them.
    ...(hasTools && {
      tools: tools.map(({ type, ...definition }) => ({ type, function: definition })),
      ...(choice !== undefined && { tool_choice: ourChoice(choice) }),
      ...(parallel !== undefined && { parallel_tool_calls: parallel }),
    }),
  };
}

function ourFormat({ type, ...more }: { type: string; [field: string]: unknown }) {
  if (type === 'json_object' && more['schema'] != null)
    return { type: 'json_schema', json_schema: { name: 'answer', ...more } };
  return type === 'json_schema' ? { type, json_schema: more } : { type };
}

function ourChoice(choice: NonNullable<FormFields['tool_choice']>) {
  return typeof choice === 'string' ? choice : { type: choice.type, function: { name: choice.name } };
}

/** Reports a `tool_choice` that requires a call although there are no tools. */
export function choiceProblems({ tools = [], tool_choice: choice }: FormFields): FieldProblem[] {
  const isPlain = choice === undefined || choice === 'auto' || choice === 'none';
  return tools.length > 0 || isPlain ? [] : [invalidValue('tool_choice', choice, 'auto or none without tools')];
}

/** Returns the name of one of our fields in the responses API. */
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
