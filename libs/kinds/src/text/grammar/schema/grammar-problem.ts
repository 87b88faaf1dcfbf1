import { DarkroomError } from '@darkroom/core';

/** Maximum characters of a message to a client. */
const maxMessage = 500;

/** An invalid or unsupported constraint. The client sees the message, prefixed with the path (`$.properties.age`). */
export class GrammarProblem extends Error {
  constructor(message: string, path?: string) {
    const full = path === undefined ? message : `${shorten(path, 200)}: ${message}`;
    super(shorten(full, maxMessage));
    this.name = 'GrammarProblem';
  }
}

export function grammarError(message: string): DarkroomError {
  return new DarkroomError('invalid_request', 'text.check-grammar', shorten(message, maxMessage));
}

/** Returns a value for an error message: JSON of bounded size, without serializing all of a large value. */
export function shortJson(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `a list of ${value.length}`;
  if (typeof value === 'object' && value !== null) return 'an object';
  if (typeof value === 'string') return JSON.stringify(shorten(value, 80));
  return String(value);
}

export function shorten(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
