/** The fields that say what an answer must be like, and which tools it may call: as OpenAI's chat completions have them. */
import { z } from 'zod';
import { textOf } from '../../field-types.ts';

const maxTools = 128;
const maxGrammarCharacters = 100_000;

const formats = ['text', 'json_object', 'json_schema'] as const;
const formatExpected = `an object such as {"type": "json_object"}`;
const schemaExpected = 'a JSON Schema, as an object';
const toolsExpected = `a list of 1 to ${maxTools} tools {"type": "function", "function": {"name", "parameters"}}, or nothing`;
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
        'What every answer keeps to: `json_object` is an object of JSON, `json_schema` JSON of a schema. Default: text.',
      example: { type: 'json_object' },
    }),
  grammar: textOf(1, maxGrammarCharacters).optional().meta({
    description: 'What every answer keeps to, as a grammar in EBNF (GBNF) whose first rule is `root`. Default: none.',
    example: 'root ::= "a " ("red" | "blue") " fox"',
  }),
  tools: z
    .array(toolSchema, { error: toolsExpected })
    .min(1, { error: toolsExpected })
    .max(maxTools, { error: toolsExpected })
    .optional()
    .meta({
      description: 'What the model may call, with arguments that keep to `parameters`. For models with `has_tools`.',
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
    .meta({ description: 'Whether it may call tools, must not, must, or must call this one. Default: auto.' }),
  parallel_tool_calls: trueOrFalse
    .optional()
    .meta({ description: 'Whether one answer may have several calls. Default: true.' }),
};

const formSchema = z.object(formFields);
/** What an answer must be like, as it was asked for. */
export type TextForm = z.infer<typeof formSchema>;

/** The form in a request; undefined for plain text. */
export function formOf(request: TextForm): TextForm | undefined {
  const form: TextForm = {
    ...(request.response_format !== undefined &&
      request.response_format.type !== 'text' && { response_format: request.response_format }),
    ...(request.grammar !== undefined && { grammar: request.grammar }),
    ...(request.tools !== undefined && { tools: request.tools }),
    ...(request.tool_choice !== undefined && { tool_choice: request.tool_choice }),
    ...(request.parallel_tool_calls !== undefined && { parallel_tool_calls: request.parallel_tool_calls }),
  };
  return Object.keys(form).length === 0 ? undefined : form;
}

/** The tools that an answer may call: none where `tool_choice` says so. */
export function toolsInUse({ tools, tool_choice: choice }: TextForm): readonly Tool[] | undefined {
  return choice === 'none' ? undefined : tools;
}
