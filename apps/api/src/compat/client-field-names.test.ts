import { expect, it } from 'vitest';
import { invalidField, invalidFields } from '../http/api-error.ts';
import { withClientFieldNames } from './client-field-names.ts';

const names = { messages: 'input', max_tokens: 'max_output_tokens' };

it.each([
  [invalidField('messages.2.content', 7, 'text'), 'input is 7, expected text', 'input'],
  [invalidField('max_tokens', 0, 'more'), 'max_output_tokens is 0, expected more', 'max_output_tokens'],
  [
    invalidFields([{ field: 'messages', code: 'invalid_value', message: 'messages have 9 tokens' }]),
    'input has 9 tokens',
    'input',
  ],
  [invalidField('constructor', 1, 'nothing'), 'constructor is 1, expected nothing', 'constructor'],
])(
  "reports %s with the client's field name, without positions that exist only in our body",
  async (error, message, param) => {
    const work = async () => {
      throw error;
    };
    await expect(withClientFieldNames(names, work)).rejects.toMatchObject({ message, param });
  },
);
