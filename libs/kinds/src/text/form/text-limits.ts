/** Generous limits on the size of a request body, checked in linear time before anything else reads it. */
import { type FieldProblem, invalidValue } from '@darkroom/core';
import { isImagePart, partsOf } from './image-parts.ts';

/** Maximum UTF-16 units of a prompt, and of the contents of all messages: several times what models read. */
export const maxTextCharacters = 1_000_000;
export const maxMessages = 10_000;
/** Maximum UTF-16 units of all messages with their tool calls and all other fields. */
const maxMessageCharacters = 2_000_000;
/** Maximum tool calls in one message, and in all messages. */
const maxCallsEach = 128;
const maxCalls = 10_000;
/** Maximum parts of content, and images, in all messages. */
const maxParts = 10_000;
const maxImages = 8;
export const maxTools = 128;
/** Maximum UTF-16 units of all tools together. */
const maxToolCharacters = 500_000;
export const maxTokenId = 2 ** 31;
const maxBiases = 1024;

export const promptExpected = `text of 1 to ${maxTextCharacters} characters, or a list of ids of tokens`;
export const biasExpected = `an object of at most ${maxBiases} numbers from -100 to 100 by ids of tokens`;

/** Returns problems with oversized fields; none for fields of a wrong type, which the schema rejects. */
export function sizeProblems(body: unknown): FieldProblem[] {
  const fields = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>;
  const { prompt, messages, tools, logit_bias: biases } = fields;
  return [
    ...(hasWrongIds(prompt) ? [invalidValue('prompt', prompt, promptExpected)] : []),
    ...(hasManyNames(biases) ? [invalidValue('logit_bias', biases, biasExpected)] : []),
    ...(Array.isArray(messages) ? messageProblems(messages) : []),
    ...(Array.isArray(tools) ? toolProblems(tools) : []),
  ];
}

/** Checks the ids of long lists only: the schema reports an issue per wrong item, which takes 0.4 s for 200,000. */
function hasWrongIds(prompt: unknown): boolean {
  return Array.isArray(prompt) && prompt.length > maxBiases && !prompt.every(isTokenId);
}

function isTokenId(id: unknown): boolean {
  return Number.isInteger(id) && (id as number) >= 0 && (id as number) <= maxTokenId;
}

function hasManyNames(biases: unknown): boolean {
  return typeof biases === 'object' && biases !== null && Object.keys(biases).length > maxBiases;
}

function messageProblems(messages: readonly unknown[]): FieldProblem[] {
  const field = 'messages';
  if (messages.length > maxMessages) return tooMany(field, messages.length, 'messages', maxMessages);
  const calls = messages.map((message) => callsIn(message));
  const at = calls.findIndex((count) => count > maxCallsEach);
  if (at >= 0) return tooMany(`messages.${at}.tool_calls`, calls[at]!, 'calls in one message', maxCallsEach);
  const allCalls = calls.reduce((sum, count) => sum + count, 0);
  if (allCalls > maxCalls) return tooMany(field, allCalls, 'tool_calls together', maxCalls);
  const parts = messages.flatMap(partsOf);
  if (parts.length > maxParts) return tooMany(field, parts.length, 'parts of content together', maxParts);
  const images = parts.filter(isImagePart);
  if (images.length > maxImages) return tooMany(field, images.length, 'images', maxImages);
  const characters = charactersIn(messages) - imageCharactersIn(images);
  if (characters <= maxMessageCharacters) return [];
  return tooMany(field, characters, 'characters with all their fields', maxMessageCharacters);
}

/** Returns the UTF-16 units of the URLs of images, which may be data: the limit of the body holds for them. */
function imageCharactersIn(images: readonly unknown[]): number {
  const urls = images.map((part) => (part as { image_url?: { url?: unknown } | null }).image_url?.url);
  return charactersIn(urls);
}

function callsIn(message: unknown): number {
  const { tool_calls: calls } = (message ?? {}) as { tool_calls?: unknown };
  return Array.isArray(calls) ? calls.length : 0;
}

function toolProblems(tools: readonly unknown[]): FieldProblem[] {
  if (tools.length > maxTools) return tooMany('tools', tools.length, 'tools', maxTools);
  const characters = charactersIn(tools);
  if (characters <= maxToolCharacters) return [];
  return tooMany('tools', characters, 'characters with all their parameters', maxToolCharacters);
}

function tooMany(field: string, count: number, of: string, max: number): FieldProblem[] {
  return [{ field, code: 'invalid_value', message: `${field} has ${count} ${of}, expected at most ${max}` }];
}

/** Returns the UTF-16 units of all strings and field names in a JSON value. */
export function charactersIn(value: unknown): number {
  let characters = 0;
  forEachValue(value, (text) => (characters += text.length));
  return characters;
}

/** Weight of each value in addition to its text: a message or a field takes time however short it is. */
const unitsPerValue = 16;

/** Estimates the work of reading a JSON value: its characters plus a constant for each value in it. */
export function weightOf(value: unknown): number {
  let weight = 0;
  const values = forEachValue(value, (text) => (weight += text.length));
  return weight + unitsPerValue * values;
}

/** Calls `onText` with each string and each field name; returns the number of values. */
function forEachValue(value: unknown, onText: (text: string) => void): number {
  const open: unknown[] = [value];
  let values = 0;
  while (open.length > 0) {
    const next = open.pop();
    values += 1;
    if (typeof next === 'string') onText(next);
    else if (Array.isArray(next)) for (const item of next) open.push(item);
    else if (typeof next === 'object' && next !== null)
      for (const [name, item] of Object.entries(next)) {
        onText(name);
        open.push(item);
      }
  }
  return values;
}
