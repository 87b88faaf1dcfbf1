/** Chats whose messages, calls or tools are many or large: rendering and tokenizing them takes time. */
import { expect } from 'vitest';
import { caller, makeCaller } from '../../e2e/caller-model.ts';
import { type AttackGroup, post, type Target } from './attack.ts';

const user = { role: 'user', content: 'hi' };
const call = (index: number) => ({ id: `c${index}`, type: 'function', function: { name: 'f', arguments: '{}' } });
const filled = <Item>(length: number, make: (index: number) => Item): Item[] =>
  Array.from({ length }, (_, index) => make(index));

const started = new WeakMap<Target['system'], Promise<unknown>>();

/** Starts a worker for a model whose template renders tool calls, once per system. */
async function startCaller({ system }: Target): Promise<void> {
  const start = async () => system.start('worker', { MODEL_DIR: await makeCaller(), NUM_THREADS: '1' });
  if (!started.has(system)) started.set(system, start());
  await started.get(system);
}

/** Sends the chat several times at once to each route; each answer is a 400 that matches `problem`, or a 429 or 503. */
async function refuse(target: Target, chat: object, problem: RegExp): Promise<void> {
  await startCaller(target);
  const body = JSON.stringify({ model: caller, max_tokens: 4, ...chat });
  const routes = ['/v1/chat/completions', '/v1/predict', '/v1/chat/completions', '/v1/predict'];
  const answers = await Promise.all(
    filled(routes.length, (index) => post(target, routes[index % routes.length]!, body)),
  );
  for (const { status, text } of answers) {
    expect([400, 429, 503]).toContain(status);
    expect(text.length).toBeLessThan(4000);
    if (status === 400) expect(text).toMatch(problem);
  }
  expect(answers.map(({ status }) => status)).toContain(400);
}

/** Error for more object members than a JSON body may have; raised before the body is validated as a chat. */
const tooMany = /the body has more than 20000 members/;
const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } };

const chats = {
  '3,000 calls in one message, below the limit of members': [
    { messages: [user, { role: 'assistant', content: '', tool_calls: filled(3000, call) }] },
    /messages\.1\.tool_calls has 3000 calls/,
  ],
  '12,000 calls in one message': [
    {
      messages: [
        user,
        { role: 'assistant', content: '', tool_calls: filled(12_000, call) },
        ...filled(900, (index) => ({ role: 'tool', tool_call_id: `c${index}`, content: '1' })),
      ],
    },
    tooMany,
  ],
  'calls in many messages': [
    {
      messages: filled(4000, (index) =>
        index % 2 === 0
          ? { role: 'assistant', content: '', tool_calls: filled(5, (at) => call(index * 5 + at)) }
          : { role: 'tool', tool_call_id: `c${index}`, content: '1' },
      ),
    },
    tooMany,
  ],
  '30,000 small messages': [{ messages: filled(30_000, () => user) }, tooMany],
  '9,000 small messages, few enough to be rendered': [{ messages: filled(9000, () => user) }, /messages have/],
  'one message of a million characters without spaces': [
    { messages: [{ role: 'user', content: 'x'.repeat(1_000_000) }] },
    /messages have/,
  ],
  'one argument of a million characters': [
    {
      messages: [
        user,
        {
          role: 'assistant',
          content: '',
          tool_calls: [{ ...call(0), function: { name: 'f', arguments: `{"a":"${'x'.repeat(900_000)}"}` } }],
        },
      ],
    },
    /messages/,
  ],
  '10,000 tools': [{ messages: [user], tools: filled(10_000, () => tool) }, tooMany],
} satisfies Record<string, [object, RegExp]>;

export const largeChats: AttackGroup = {
  topic: 'large chats',
  attacks: Object.entries(chats).map(([name, [chat, problem]]) => ({
    title: `refuses chats with ${name}, and serves other clients meanwhile`,
    run: (target) => refuse(target, chat, problem),
  })),
};
