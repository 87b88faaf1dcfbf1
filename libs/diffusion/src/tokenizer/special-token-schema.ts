import { z } from 'zod';

/** A token as tokenizer_config.json has it: the text, or an object with the text. */
export const specialTokenSchema = z.union([
  z.string(),
  z.looseObject({ content: z.string() }).transform(({ content }) => content),
]);
