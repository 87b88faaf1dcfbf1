/** Converts OpenAI's `input` to messages. */
import { describeValue, type FieldProblem, invalidValue } from '@darkroom/core';
import { imageDetail, imageExpected, imageSource, type TextMessage } from '@darkroom/kinds';
import { invalidFields } from '../http/api-error.ts';
import { requestIdOfItem } from './response-ids.ts';

/** A message, or a reference to an item of an earlier response. */
export type InputItem = { message: TextMessage } | { reference: string; requestId: string; field: string };

/** Each reference is a lookup in Redis. */
const maxReferences = 100;

/** Roles in our messages, by OpenAI's roles. Chat templates do not know `developer`. */
const roles: Readonly<Record<string, string>> = {
  user: 'user',
  assistant: 'assistant',
  system: 'system',
  developer: 'system',
};
const roleExpected = `one of ${Object.keys(roles).join(', ')}`;
const inputExpected = 'text, or a list of at least one message';
const contentExpected = 'text, or a list of at least one part {"type": "input_text", "text"}';
const typeExpected = 'message, function_call, function_call_output or item_reference';
const textTypes = ['input_text', 'output_text', 'text'];

/** Parses `input`. Throws 400 that names each invalid item. */
export function parseInput(input: unknown): InputItem[] {
  if (typeof input === 'string' && input !== '') return [{ message: { role: 'user', content: input } }];
  if (!Array.isArray(input) || input.length === 0) throw invalidFields([invalidValue('input', input, inputExpected)]);
  const problems: FieldProblem[] = [];
  const items = input.map((item: unknown, index) => parseItem(item, `input.${index}`, problems));
  const references = items.filter((item) => 'reference' in item).length;
  if (references > maxReferences)
    problems.push(invalidValue('input', `${references} references`, `at most ${maxReferences} references`));
  if (problems.length > 0) throw invalidFields(problems);
  return items;
}

function parseItem(item: unknown, field: string, problems: FieldProblem[]): InputItem {
  const nothing = { message: { role: 'user', content: '' } };
  if (!isObject(item)) {
    problems.push(invalidValue(field, item, 'a message {"role", "content"}'));
    return nothing;
  }
  const { type = 'message', id } = item;
  switch (type) {
    case 'message':
      return { message: parseMessage(item, field, problems) };
    case 'function_call':
      return { message: parseCall(item, field, problems) };
    case 'function_call_output':
      return { message: parseCallOutput(item, field, problems) };
    case 'item_reference': {
      const requestId = requestIdOfItem(id);
      if (requestId !== undefined) return { reference: id as string, requestId, field: `${field}.id` };
      problems.push(invalidValue(`${field}.id`, id, 'the id of a message or call of a response'));
      return nothing;
    }
    default:
      problems.push(invalidValue(`${field}.type`, type, typeExpected));
      return nothing;
  }
}

function parseMessage(
  { role, content }: Record<string, unknown>,
  field: string,
  problems: FieldProblem[],
): TextMessage {
  const message: TextMessage = { role: roleOf(role) ?? '', content: '' };
  if (message.role === '') problems.push(invalidValue(`${field}.role`, role, roleExpected));
  else message.content = readParts(content, `${field}.content`, problems);
  return message;
}

/** Parses an earlier call as an assistant message. */
function parseCall(item: Record<string, unknown>, field: string, problems: FieldProblem[]): TextMessage {
  const [id, name, json] = (['call_id', 'name', 'arguments'] as const).map((part) =>
    textAt(item, part, field, problems),
  ) as [string, string, string];
  const call = { id, type: 'function', function: { name, arguments: json } };
  return { role: 'assistant', content: '', tool_calls: [call] };
}

/** Parses the result of a call as a tool message. */
function parseCallOutput(item: Record<string, unknown>, field: string, problems: FieldProblem[]): TextMessage {
  const tool_call_id = textAt(item, 'call_id', field, problems);
  return { role: 'tool', content: joinTextParts(item['output'], `${field}.output`, problems), tool_call_id };
}

function textAt(item: Record<string, unknown>, part: string, field: string, problems: FieldProblem[]): string {
  const value = item[part];
  if (typeof value === 'string') return value;
  problems.push(invalidValue(`${field}.${part}`, value, 'text'));
  return '';
}

function roleOf(role: unknown): string | undefined {
  return typeof role === 'string' && Object.hasOwn(roles, role) ? roles[role] : undefined;
}

/** Reads the parts of a message: text if it has no images. */
function readParts(content: unknown, field: string, problems: FieldProblem[]): TextMessage['content'] {
  if (!Array.isArray(content) || !content.some(isImage)) return joinTextParts(content, field, problems);
  return content.map((part: unknown, index) => {
    if (isImage(part)) return readImage(part, `${field}.${index}`, problems);
    return { type: 'text', text: textPart(part, `${field}.${index}`, problems) };
  });
}

function isImage(part: unknown): part is Record<string, unknown> {
  return isObject(part) && part['type'] === 'input_image';
}

function readImage({ image_url: url, detail }: Record<string, unknown>, field: string, problems: FieldProblem[]) {
  const { data: source = '' } = imageSource.safeParse(url);
  if (source === '') problems.push(invalidValue(`${field}.image_url`, url, imageExpected));
  const { success, data: level } = imageDetail.safeParse(detail ?? undefined);
  if (!success) problems.push(invalidValue(`${field}.detail`, detail, 'auto, low or high'));
  return { type: 'image_url' as const, image_url: { url: source, ...(level && { detail: level }) } };
}

/** Joins text parts with line breaks. */
function joinTextParts(content: unknown, field: string, problems: FieldProblem[]): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content) || content.length === 0) {
    problems.push(invalidValue(field, content, contentExpected));
    return '';
  }
  return content.map((part, index) => textPart(part, `${field}.${index}`, problems)).join('\n');
}

function textPart(part: unknown, field: string, problems: FieldProblem[]): string {
  const { type, text } = isObject(part) ? part : {};
  if (typeof type !== 'string' || !textTypes.includes(type))
    problems.push(
      invalidValue(
        `${field}.type`,
        type ?? describeValue(part),
        'input_text, output_text, or input_image in a message',
      ),
    );
  else if (typeof text !== 'string') problems.push(invalidValue(`${field}.text`, text, 'text'));
  else return text;
  return '';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
