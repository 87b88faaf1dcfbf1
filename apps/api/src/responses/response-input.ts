/** What OpenAI's `input` says, as messages. */
import { describeValue, type FieldProblem, invalidValue } from '@darkroom/core';
import type { TextMessage } from '@darkroom/kinds';
import { invalidFields } from '../http/api-error.ts';
import { requestIdIn } from './response-ids.ts';

/** A message, or the id of a request whose answer it is. */
export type InputItem = { message: TextMessage } | { answerOf: string; field: string };

/** Each has to be looked up. */
const maxReferences = 100;

/** Templates of models know no developers. */
const roles: Readonly<Record<string, string>> = {
  user: 'user',
  assistant: 'assistant',
  system: 'system',
  developer: 'system',
};
const roleExpected = `one of ${Object.keys(roles).join(', ')}`;
const inputExpected = 'text, or a list of at least one message';
const contentExpected = 'text, or a list of at least one part {"type": "input_text", "text"}';
const textTypes = ['input_text', 'output_text', 'text'];

/** Throws 400 for whatever is no text, by its place in the input. */
export function parseInput(input: unknown): InputItem[] {
  if (typeof input === 'string' && input !== '') return [{ message: { role: 'user', content: input } }];
  if (!Array.isArray(input) || input.length === 0) throw invalidFields([invalidValue('input', input, inputExpected)]);
  const problems: FieldProblem[] = [];
  const items = input.map((item: unknown, index) => parseItem(item, `input.${index}`, problems));
  const references = items.filter((item) => 'answerOf' in item).length;
  if (references > maxReferences)
    problems.push(invalidValue('input', `${references} references`, `at most ${maxReferences} of them`));
  if (problems.length > 0) throw invalidFields(problems);
  return items;
}

function parseItem(item: unknown, field: string, problems: FieldProblem[]): InputItem {
  const { type = 'message', role, content, id } = isObject(item) ? item : {};
  const isReference = type === 'item_reference';
  const answerOf = isReference ? requestIdIn('message', id) : undefined;
  if (answerOf !== undefined) return { answerOf, field: `${field}.id` };
  const message = { role: roleOf(role) ?? '', content: '' };
  if (!isObject(item)) problems.push(invalidValue(field, item, 'a message {"role", "content"}'));
  else if (isReference) problems.push(invalidValue(`${field}.id`, id, 'the id of a message of a response'));
  else if (type !== 'message')
    problems.push(invalidValue(`${field}.type`, type, 'message or item_reference: there are no tools here'));
  else if (message.role === '') problems.push(invalidValue(`${field}.role`, role, roleExpected));
  else message.content = textIn(content, `${field}.content`, problems);
  return { message };
}

function roleOf(role: unknown): string | undefined {
  return typeof role === 'string' && Object.hasOwn(roles, role) ? roles[role] : undefined;
}

/** Parts as lines of one text. */
function textIn(content: unknown, field: string, problems: FieldProblem[]): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content) || content.length === 0) {
    problems.push(invalidValue(field, content, contentExpected));
    return '';
  }
  const texts = content.map((part: unknown, index) => {
    const { type, text } = isObject(part) ? part : {};
    if (typeof type !== 'string' || !textTypes.includes(type))
      problems.push(
        invalidValue(
          `${field}.${index}.type`,
          type ?? describeValue(part),
          'input_text or output_text: models read text',
        ),
      );
    else if (typeof text !== 'string') problems.push(invalidValue(`${field}.${index}.text`, text, 'text'));
    else return text;
    return '';
  });
  return texts.join('\n');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
