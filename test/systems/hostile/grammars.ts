/** Grammars and schemas that once took minutes or gigabytes to compile, or ran client patterns in V8. */
import { expect } from 'vitest';
import { type AttackGroup, post, type Target } from './attack.ts';

const chat = (form: object) => ({
  model: 'emoji-writer',
  messages: [{ role: 'user', content: 'a red fox' }],
  max_tokens: 8,
  ...form,
});
const ofSchema = (schema: unknown) => ({
  response_format: { type: 'json_schema', json_schema: { name: 'form', schema } },
});
const names = (count: number) => Array.from({ length: count }, (_, at) => `name_${at}`);
const properties = (count: number, schema: object = { type: 'string' }) =>
  Object.fromEntries(names(count).map((name) => [name, schema]));

const slow = (at: number) =>
  ofSchema({ type: 'object', title: `${at}`, properties: properties(4500, { type: 'string', maxLength: 9 }) });

/** Sends each grammar or schema; expects an answer of bounded size with one of these statuses. */
async function send(target: Target, forms: readonly object[], statuses: readonly number[]): Promise<void> {
  const answers = await Promise.all(forms.map((form) => post(target, '/v1/chat/completions', chat(form))));
  for (const { status, text } of answers)
    expect([statuses.includes(status), text.length < 4000, text]).toEqual([true, true, text]);
}

export const grammars: AttackGroup = {
  topic: 'grammars and schemas',
  attacks: [
    {
      title: 'refuses patterns with catastrophic backtracking (ReDoS) without running them',
      run: (target) =>
        send(
          target,
          [
            ofSchema({ type: 'string', format: 'uuid', pattern: '^(?=.)([\\w-]+)+!$' }),
            ofSchema({ type: 'string', format: 'email', pattern: '^(?!x)(([a-z])+.)+[A-Z]([a-z])+$' }),
            ofSchema({ type: 'string', pattern: '(a)\\1' }),
            ofSchema({ type: 'object', patternProperties: { '(?<=a)(a+)+$': {} } }),
          ],
          [400],
        ),
    },
    {
      title: 'answers grammars of nested repetitions in bounded memory',
      run: (target) =>
        send(
          target,
          [
            { grammar: 'root ::= (((("a"{0,1000}){0,1000}){0,1000}){0,1000}' },
            { grammar: 'root ::= ((("a"{0,1000}){0,1000}){0,1000}){0,1000}' },
            { grammar: 'root ::= x{0,100000}\nx ::= y{0,100000}\ny ::= [a-z]{0,100000}' },
            { grammar: 'root ::= "a"{0,999999999}' },
            { grammar: `root ::= ${'('.repeat(40_000)}"a"` },
            ofSchema({ type: 'string', pattern: '(((a{0,1000}){0,1000}){0,1000}){0,1000}' }),
          ],
          [200, 400],
        ),
    },
    {
      title: 'answers schemas of up to a megabyte',
      run: (target) =>
        send(
          target,
          [
            ofSchema({ type: 'object', required: names(50_000) }),
            ofSchema({ type: 'object', properties: properties(30_000, {}) }),
            ofSchema({ type: 'string', pattern: '[ab]'.repeat(58_000) }),
            ofSchema({ type: 'string', pattern: '['.repeat(99_900) }),
            ofSchema({
              oneOf: Array.from({ length: 256 }, (_, at) => ({
                enum: Array.from({ length: 400 }, (_v, of) => at + of),
              })),
            }),
            {
              tools: [
                { type: 'function', function: { name: 'f', parameters: { type: 'object', required: names(50_000) } } },
              ],
            },
          ],
          [200, 400],
        ),
    },
    {
      title: 'writes with valid schemas that once took 10 to 34 s to compile, also when they are repeated',
      async run(target) {
        const forms = [
          ofSchema({ type: 'object', properties: properties(500) }),
          ofSchema({ type: 'string', pattern: '(([a-z]{1,40}){1,40}){1,10}' }),
          ofSchema({ type: 'string', pattern: '[a-zA-Z0-9 ]{0,200} '.repeat(60) }),
        ];
        await send(target, [...forms, ...forms], [200]);
      },
    },
    {
      title: 'checks slow schemas of one client in turns with those of others, and refuses a repeated one at once',
      async run(target) {
        await send(
          target,
          Array.from({ length: 6 }, (_, at) => slow(at)),
          [200, 400],
        );
        await send(target, [slow(0), slow(0), slow(0)], [200, 400]);
      },
    },
  ],
};
