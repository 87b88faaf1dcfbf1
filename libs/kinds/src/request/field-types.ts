/** Field types whose error text is what was expected: `fieldProblems` prefixes the field's name and the value. */
import { z } from 'zod';

export function integerField(min: number, max: number): z.ZodInt {
  const expected = `a whole number from ${min} to ${max}`;
  return z.int({ error: expected }).min(min, { error: expected }).max(max, { error: expected });
}

/** @param unit a phrase such as ` of seconds`. */
export function finiteNumber(min: number, max: number, unit = ''): z.ZodNumber {
  const expected = `a number${unit} from ${min} to ${max}`;
  return z.number({ error: expected }).min(min, { error: expected }).max(max, { error: expected });
}

/** @param min minimum length in characters. @param max maximum length in characters. */
export function textField(min: number, max: number): z.ZodString {
  const expected = min === 0 ? `text of at most ${max} characters` : `text of ${min} to ${max} characters`;
  return z.string({ error: expected }).min(min, { error: expected }).max(max, { error: expected });
}
