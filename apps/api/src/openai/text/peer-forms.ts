/** Converts the structured-output fields of vLLM, llama.cpp, SGLang, Together, Fireworks and TGI to our fields. */
import { type FieldProblem, invalidValue } from '@darkroom/core';

/** An object with one of our fields: `response_format`, `grammar` or `regex`. */
type OurForm = Readonly<Record<string, unknown>>;

interface RequestedForm {
  /** The client's name of the field, such as `structured_outputs.json`. */
  field: string;
  value: unknown;
  toOurs: (value: unknown, field: string, problems: FieldProblem[]) => OurForm;
}

const schemaExpected = 'a JSON Schema, as an object or as a JSON string';
const choiceExpected = 'a list of 1 to 1000 texts';
const maxChoices = 1000;

const makers: Readonly<Record<string, RequestedForm['toOurs']>> = { json: schemaForm, grammar, regex, choice };

const fieldMakers: Readonly<Record<string, RequestedForm['toOurs']>> = {
  json_schema: schemaForm,
  guided_json: schemaForm,
  guided_regex: regex,
  guided_choice: choice,
  guided_grammar: grammar,
  guided_json_object: anyObjectForm,
  ebnf: grammar,
  regex,
  grammar,
};

/** Names of all fields that `peerForm` reads. */
export const formFieldNames: readonly string[] = [...Object.keys(fieldMakers), 'structured_outputs', 'response_format'];

/**
 * Returns the output format that a body requests, in our fields, and the client's names of these fields. Adds errors to
 * `problems`; more than one format is an error.
 */
export function peerForm(
  fields: Readonly<Record<string, unknown>>,
  problems: FieldProblem[],
): { form: OurForm; names: Record<string, string> } {
  const requested = [...formatsIn(fields, problems), ...topLevelForms(fields), ...structuredOutputs(fields, problems)];
  const [first, second] = requested;
  if (first === undefined) return { form: {}, names: {} };
  if (second !== undefined) {
    const message = `${second.field} is given together with ${first.field}, expected one output format`;
    problems.push({ field: second.field, code: 'invalid_value', message });
    return { form: {}, names: {} };
  }
  const { field, value, toOurs } = first;
  const form = toOurs(value, field, problems);
  const isSchema = (form['response_format'] as { type?: unknown } | undefined)?.type === 'json_schema';
  const [ours = ''] = Object.keys(form);
  if (ours === field || field === 'response_format') return { form, names: {} };
  return {
    form,
    names: isSchema ? { 'response_format.json_schema.schema': field, response_format: field } : { [ours]: field },
  };
}

/** Parts of `response_format` that describe the format, by its `type`, in the variants of several servers. */
const formatParts: Readonly<Record<string, Readonly<Record<string, RequestedForm['toOurs'] | undefined>>>> = {
  text: {},
  json_object: { schema: schemaForm, json_schema: namedSchemaForm },
  // Undefined: ours is OpenAI's format, so nothing is converted.
  json_schema: { json_schema: undefined, schema: schemaForm },
  json: { value: schemaForm, schema: schemaForm, json_schema: namedSchemaForm },
  grammar: { grammar, value: grammar },
  regex: { pattern: regex, value: regex, regex },
};
const partNames = new Set(Object.values(formatParts).flatMap((parts) => Object.keys(parts)));

/** Reads `response_format` in the variants of several servers. Reports parts that do not belong to its type. */
function formatsIn(
  { response_format: format }: Readonly<Record<string, unknown>>,
  problems: FieldProblem[],
): RequestedForm[] {
  if (format == null) return [];
  const { type, ...more } = (typeof format === 'object' ? format : {}) as Record<string, unknown>;
  const ofType = Object.hasOwn(formatParts, String(type)) ? formatParts[String(type)] : undefined;
  const given = [...partNames].filter((name) => more[name] != null);
  const part = Object.keys(ofType ?? {}).find((name) => given.includes(name));
  for (const name of ofType === undefined ? [] : given.filter((name) => name !== part)) {
    const expected = `nothing in addition to ${part ?? `"type": "${String(type)}"`}`;
    problems.push(invalidValue(`response_format.${name}`, more[name], expected));
  }
  if (type === 'text') return [];
  const toOurs = part === undefined ? undefined : ofType?.[part];
  if (toOurs !== undefined) return [{ field: `response_format.${part}`, value: more[part!], toOurs }];
  return [{ field: 'response_format', value: format, toOurs: (value) => ({ response_format: value }) }];
}

function topLevelForms(fields: Readonly<Record<string, unknown>>): RequestedForm[] {
  return Object.entries(fieldMakers).flatMap(([field, toOurs]) => {
    const value = fields[field];
    return value == null || value === false ? [] : [{ field, value, toOurs }];
  });
}

function structuredOutputs(fields: Readonly<Record<string, unknown>>, problems: FieldProblem[]): RequestedForm[] {
  const { structured_outputs: outputs } = fields;
  if (outputs == null) return [];
  if (typeof outputs !== 'object' || Array.isArray(outputs)) {
    problems.push(invalidValue('structured_outputs', outputs, 'an object such as {"regex": "red|blue"}'));
    return [];
  }
  const all = { ...makers, json_object: anyObjectForm };
  return Object.entries(outputs).flatMap(([part, value]: [string, unknown]) => {
    const field = `structured_outputs.${part}`;
    const toOurs = Object.hasOwn(all, part) ? all[part as keyof typeof all] : undefined;
    if (value == null || value === false || part.startsWith('disable_') || part.startsWith('_')) return [];
    if (toOurs !== undefined) return [{ field, value, toOurs }];
    problems.push(invalidValue(field, value, `nothing: this server supports ${Object.keys(all).join(', ')}`));
    return [];
  });
}

function schemaForm(given: unknown, field: string, problems: FieldProblem[]): OurForm {
  const schema = typeof given === 'string' ? parsed(given) : given;
  if (typeof schema === 'object' && schema !== null && !Array.isArray(schema))
    return { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } } };
  problems.push(invalidValue(field, given, schemaExpected));
  return {};
}

/** Converts a schema, or OpenAI's `{"name", "schema"}` object around one. */
function namedSchemaForm(given: unknown, field: string, problems: FieldProblem[]): OurForm {
  const { name, schema } = (given ?? {}) as { name?: unknown; schema?: unknown };
  const isNamed = typeof name === 'string' && typeof schema === 'object';
  return schemaForm(isNamed ? schema : given, field, problems);
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function anyObjectForm(value: unknown, field: string, problems: FieldProblem[]): OurForm {
  if (value !== true) problems.push(invalidValue(field, value, 'true or false'));
  return { response_format: { type: 'json_object' } };
}

function regex(value: unknown): OurForm {
  return { regex: value };
}

function grammar(value: unknown): OurForm {
  return { grammar: value };
}

function choice(value: unknown, field: string, problems: FieldProblem[]): OurForm {
  const isList = Array.isArray(value) && value.length > 0 && value.length <= maxChoices;
  if (isList && value.every((text) => typeof text === 'string' && text !== ''))
    return { grammar: `root ::= ${value.map((text: string) => literal(text)).join(' | ')}` };
  problems.push(invalidValue(field, value, choiceExpected));
  return {};
}

/** Returns `text` as a GBNF string literal. */
function literal(text: string): string {
  const escaped = text.replaceAll(/[\\"]/g, String.raw`\$&`).replaceAll('\n', String.raw`\n`);
  return `"${escaped.replaceAll('\r', String.raw`\r`).replaceAll('\t', String.raw`\t`)}"`;
}
