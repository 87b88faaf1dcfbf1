/** Types of fields whose checks say what they expect: `fieldProblems` puts the field's name and the value before it. */
import { z } from 'zod';

export function wholeNumber(min: number, max: number): z.ZodInt {
  const expected = `a whole number from ${min} to ${max}`;
  return z.int({ error: expected }).min(min, { error: expected }).max(max, { error: expected });
}

/** `unit` as in ` of seconds`. */
export function finiteNumber(min: number, max: number, unit = ''): z.ZodNumber {
  const expected = `a number${unit} from ${min} to ${max}`;
  return z.number({ error: expected }).min(min, { error: expected }).max(max, { error: expected });
}

/** Both in characters. */
export function textOf(min: number, max: number): z.ZodString {
  const expected = min === 0 ? `text of at most ${max} characters` : `text of ${min} to ${max} characters`;
  return z.string({ error: expected }).min(min, { error: expected }).max(max, { error: expected });
}
