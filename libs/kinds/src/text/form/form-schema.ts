/** Fields for output formats and tools, as in OpenAI's chat completions. */
import { z } from 'zod';
import { textField } from '../../request/field-types.ts';
import { maxTools } from './text-limits.ts';

const maxGrammarCharacters = 100_000;
const maxRegexCharacters = 10_000;

const formats = ['text', 'json_object', 'json_schema'] as const;
const formatExpected = `an object such as {"type": "json_object"}`;
const schemaExpected = 'a JSON Schema, as an object';
const toolsExpected = `a list of at most ${maxTools} tools {"type": "function", "function": {"name", "parameters"}}, or nothing`;
const toolExpected = 'a tool {"type": "function", "function": {"name", "parameters"}}';
const nameExpected = '1 to 64 of the letters a to z and A to Z, digits, _ and -';
const parametersExpected = 'a JSON Schema of an object: {"type": "object", "properties": …}';
const choiceExpected = 'auto, none, required, or {"type": "function", "function": {"name"}}';

export const functionName = z.string({ error: nameExpected }).regex(/^[\w-]{1,64}$/, { error: nameExpected });
const trueOrFalse = z.boolean({ error: 'true or false' });
const functionType = z.literal('function', { error: '"function"' });

const toolSchema = z.looseObject(
  {
    type: functionType,
    function: z.looseObject(
      {
        name: functionName,
        description: z.string({ error: 'text' }).nullish(),
        parameters: z
          .looseObject(
            { type: z.literal('object', { error: '"object": tools take an object' }) },
            { error: parametersExpected },
          )
          .nullish(),
        strict: trueOrFalse.nullish(),
      },
      { error: 'an object {"name", "parameters"}' },
    ),
  },
  { error: toolExpected },
);
export type Tool = z.infer<typeof toolSchema>;

export const formFields = {
  response_format: z
    .discriminatedUnion(
      'type',
      [
        z.looseObject({ type: z.literal('text') }),
        z.looseObject({ type: z.literal('json_object') }),
        z.looseObject({
          type: z.literal('json_schema'),
          json_schema: z.looseObject(
            { schema: z.looseObject({}, { error: schemaExpected }) },
            { error: 'an object {"name", "schema"}' },
          ),
        }),
      ],
      { error: ({ code }) => (code === 'invalid_union' ? `one of ${formats.join(', ')}` : formatExpected) },
    )
    .optional()
    .meta({
      description:
        'Format of every answer: `json_object` is any JSON object, `json_schema` JSON of a schema. Default: text.',
      example: { type: 'json_object' },
    }),
  grammar: textField(1, maxGrammarCharacters).optional().meta({
    description: 'Grammar of every answer in EBNF (GBNF) whose start rule is `root`. Default: none.',
    example: 'root ::= "a " ("red" | "blue") " fox"',
  }),
  regex: textField(1, maxRegexCharacters).optional().meta({
    description: 'Regular expression that the full text of every answer matches. Default: none.',
    example: '(red|blue) fox',
  }),
  tools: z.array(toolSchema, { error: toolsExpected }).max(maxTools, { error: toolsExpected }).optional().meta({
    description:
      'Tools that the model may call, with arguments that match `parameters`; an empty list is none. For models with `has_tools`. With `response_format`, `grammar` or `regex`, an answer is either calls or text of that form.',
  }),
  tool_choice: z
    .union(
      [
        z.enum(['auto', 'none', 'required']),
        z.looseObject({ type: functionType, function: z.looseObject({ name: z.string() }) }),
      ],
      { error: choiceExpected },
    )
    .optional()
    .meta({
      description:
        '`auto`: the model may call tools; `none`: it must not; `required`: it must; an object: it must call this one. Default: auto.',
    }),
  parallel_tool_calls: trueOrFalse
    .optional()
    .meta({ description: 'Whether one answer may have several tool calls. Default: true.' }),
};

const formSchema = z.object(formFields);
/** The requested output format and tools. */
export type TextForm = z.infer<typeof formSchema>;

/** Returns the form in a request; undefined for plain text. */
export function formOf(request: TextForm): TextForm | undefined {
  const form: TextForm = {
    ...(request.response_format !== undefined &&
      request.response_format.type !== 'text' && { response_format: request.response_format }),
    ...(request.grammar !== undefined && { grammar: request.grammar }),
    ...(request.regex !== undefined && { regex: request.regex }),
    ...(hasTools(request) && {
      tools: request.tools,
      ...(request.tool_choice !== undefined && { tool_choice: request.tool_choice }),
      ...(request.parallel_tool_calls !== undefined && { parallel_tool_calls: request.parallel_tool_calls }),
    }),
  };
  return Object.keys(form).length === 0 ? undefined : form;
}

function hasTools({ tools = [] }: TextForm): boolean {
  return tools.length > 0;
}

/** Returns the tools that an answer may call; undefined without tools or if `tool_choice` is `none`. */
export function toolsInUse(form: TextForm): readonly Tool[] | undefined {
  return form.tool_choice === 'none' || !hasTools(form) ? undefined : form.tools;
}

/** Fields that constrain the full answer; a request has at most one of them. */
const exclusiveForms = ['response_format', 'grammar', 'regex'] as const;
export type ExclusiveForm = (typeof exclusiveForms)[number];

/** Returns the fields in use that constrain the full answer. */
export function exclusiveFormsIn(form: TextForm): readonly ExclusiveForm[] {
  return exclusiveForms.filter((field) =>
    field === 'response_format' ? (form[field]?.type ?? 'text') !== 'text' : form[field] !== undefined,
  );
}

/** Returns whether every answer must consist of tool calls only. */
export function mustCall({ tool_choice: choice = 'auto' }: TextForm): boolean {
  return choice !== 'auto' && choice !== 'none';
}
