/** OpenAI's Python SDK, as it comes, with the writer that is in the box. */
import { readFile } from 'node:fs/promises';
import { allKeys } from '@darkroom/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeCaller } from '../e2e/caller-model.ts';
import { ended, poll } from '../e2e/client.ts';
import { writer } from '../e2e/shared-system.ts';
import { openSystem, patience, startSystem, stopSystem, type System } from '../e2e/system.ts';
import { installOpenaiPython, runOpenaiPython } from './openai-python.ts';

let system: System;
beforeAll(async () => {
  const [caller] = await Promise.all([makeCaller(), installOpenaiPython()]);
  const workers = ['models/emoji-writer', 'models/emoji-writer-diffusion', caller].map((directory) => ({
    name: 'worker' as const,
    environment: { MODEL_DIR: directory },
  }));
  system = await startSystem({ parts: ['api', 'batch-former', 'janitor', ...workers], environment: patience });
}, 600_000);
afterAll(() => stopSystem(system));

/** All requests of the writer that are stored. */
async function storedIds({ store }: System): Promise<string[]> {
  const start = store.keysOf(writer).request('');
  const keys = await allKeys(store);
  return keys.filter((key) => key.startsWith(`${start}${writer}-`)).map((key) => key.slice(start.length));
}

/** What the lines of a program print, each as JSON. */
async function run(program: string, { url } = system): Promise<unknown[]> {
  const start = `
import asyncio, json
import openai
from openai import OpenAI, AsyncOpenAI

client = OpenAI()
ask = dict(model="emoji-writer", messages=[{"role": "user", "content": "something sweet for a birthday party"}])
say = lambda *values: print(json.dumps(values))
`;
  const lines = (await runOpenaiPython(start + program, url)).trim().split('\n');
  return lines.map((line): unknown => JSON.parse(line));
}

const answer = 'a birthday cake on a pink background';

it('has a message answered, and streams the same', async () => {
  const [whole, pieces, tokens] = (await run(`
chat = client.chat.completions.create(**ask)
say(chat.choices[0].message.content, chat.choices[0].finish_reason, chat.usage.total_tokens, chat._request_id)
with client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}) as stream:
    chunks = list(stream)
say([chunk.choices[0].delta.content for chunk in chunks if chunk.choices], chunks[-1].usage.total_tokens)
chat = client.chat.completions.create(**ask, logprobs=True, top_logprobs=2)
say([token.token for token in chat.choices[0].logprobs.content])
`)) as [[string, string, number, string], [(string | null)[], number], [string[]]];
  const [text, reason, total, id] = whole;
  expect([text, reason]).toEqual([answer, 'stop']);
  expect(await poll(system.url, id)).toMatchObject({ status: 'succeeded', usage: { total_tokens: total } });
  expect(pieces[0].join('')).toBe(answer);
  expect([pieces[0][0], pieces[0].at(-1)]).toEqual(['', null]);
  expect(pieces[1]).toBe(total);
  expect(tokens[0].join('')).toBe(answer);
});

it('does so asynchronously, puts streams together, and takes fields of this server', async () => {
  expect(
    await run(`
async def main():
    client = AsyncOpenAI()
    answers = await asyncio.gather(*[client.chat.completions.create(**ask, n=2, seed=5, temperature=1) for _ in range(4)])
    say(len({tuple(choice.message.content for choice in each.choices) for each in answers}))
    async with client.chat.completions.stream(**ask) as stream:
        say((await stream.get_final_completion()).choices[0].message.content)

asyncio.run(main())
say(client.chat.completions.create(**ask, stop=["ake on a pi"], extra_body={"top_k": 5}).choices[0].message.content)
`),
  ).toEqual([[1], [answer], ['a birthday c']]);
});

it('has answers of a schema of pydantic, and tools called with its arguments', async () => {
  const [parsed, called, responded] = await run(`
from enum import Enum
from pydantic import BaseModel

class Color(str, Enum):
    red = "red"
    blue = "blue"

class Picture(BaseModel):
    """A picture."""
    color: Color
    big: bool

asked = dict(**{**ask, "max_tokens": 200})
picture = client.chat.completions.parse(**asked, response_format=Picture).choices[0].message.parsed
say(isinstance(picture, Picture))
tool = openai.pydantic_function_tool(Picture, name="draw")
choice = {"type": "function", "function": {"name": "draw"}}
chat = client.chat.completions.parse(**{**asked, "model": "emoji-writer-caller"}, tools=[tool], tool_choice=choice)
[call] = chat.choices[0].message.tool_calls
say(call.function.name, isinstance(call.function.parsed_arguments, Picture), chat.choices[0].finish_reason)
response = client.responses.parse(model="emoji-writer", input="a fox", max_output_tokens=200, text_format=Picture)
say(isinstance(response.output_parsed, Picture))
`);
  expect([parsed, called, responded]).toEqual([[true], ['draw', true, 'tool_calls'], [true]]);
});

it('has a text continued', async () => {
  const [[whole, pieces]] = (await run(`
ask = dict(model="emoji-writer", prompt="<|im_start|>assistant\\na bird on a", max_tokens=8)
whole = client.completions.create(**ask).choices[0].text
say(whole, [chunk.choices[0].text for chunk in client.completions.create(**ask, stream=True)])
`)) as [[string, string[]]];
  expect(whole).toBe(' green background');
  expect(pieces.join('')).toBe(whole);
});

it('creates responses, streams them, and streams them again from the middle', async () => {
  const [[text, total, id], [streamed, rest, again]] = (await run(`
ask = dict(model="emoji-writer", input="something sweet for a birthday party")
made = client.responses.create(**ask)
assert client.responses.retrieve(made.id).output_text == made.output_text
say(made.output_text, made.usage.total_tokens, made._request_id)
text = lambda events: "".join(event.delta for event in events if event.type == "response.output_text.delta")
events = list(client.responses.create(**ask, stream=True))
middle = len(events) // 2
resumed = client.responses.retrieve(events[-1].response.id, stream=True, starting_after=events[middle].sequence_number)
say(text(events), text(events[middle + 1 :]), text(resumed))
`)) as [[string, number, string], [string, string, string]];
  expect(text).toBe(answer);
  expect(await poll(system.url, id)).toMatchObject({ status: 'succeeded', usage: { total_tokens: total } });
  expect([streamed, again]).toEqual([answer, rest]);
  expect(rest).not.toBe('');
});

it('has responses made in the background, and cancels them', async () => {
  const [[first, done], [started, canceled, later]] = (await run(`
ask = dict(model="emoji-writer-diffusion", input="something sweet for a birthday party", background=True)

async def main():
    client = AsyncOpenAI()
    made = await client.responses.create(**ask)
    async for event in await client.responses.retrieve(made.id, stream=True):
        pass
    say(made.status, event.response.output_text)

asyncio.run(main())
slow = client.responses.create(**ask, max_output_tokens=200, extra_body={"ignore_eos": True})
canceled = client.responses.cancel(slow.id)
say(slow.status, canceled.status, client.responses.retrieve(slow.id).status)
`)) as [[string, string], [string, string, string]];
  const begun = expect.stringMatching(/^(?:queued|in_progress)$/) as string;
  expect([first, done]).toEqual([begun, answer]);
  expect([started, canceled, later]).toEqual([begun, 'cancelled', 'cancelled']);
});

it('does what docs/text.md says', async () => {
  const document = await readFile(new URL('../../docs/text.md', import.meta.url), 'utf8');
  const [, program] = /```python\n(.*?)```/s.exec(document)!;
  const printed = await runOpenaiPython(program!.replaceAll('http://127.0.0.1:8080', system.url), system.url);
  expect(printed).toBe(`${answer}\n${answer}`);
});

it('says what is wrong, and cancels what it closes', async () => {
  const [wrong, [id]] = (await run(`
try:
    client.chat.completions.create(**{**ask, "messages": [{"role": "user", "content": "sweet " * 300}]}, stream=True)
except openai.BadRequestError as error:
    say(error.code, error.param, error.type)
response = client.chat.completions.with_raw_response.create(
    **ask, stream=True, n=10, max_tokens=230, extra_body={"ignore_eos": True}
)
stream = response.parse()
next(iter(stream))
stream.close()
say(response.headers["x-request-id"])
`)) as [unknown[], [string]];
  expect(wrong).toEqual(['context_length_exceeded', 'messages', 'invalid_request_error']);
  await expect.poll(() => poll(system.url, id)).toMatchObject({ status: 'canceled' });
});

it('sends again what found no room, and nothing that has come to its end', async () => {
  const worker = { name: 'worker', environment: { MODEL_DIR: `models/${writer}` } } as const;
  // Without a former what is asked for waits.
  const one = await openSystem({ parts: ['api', 'janitor', worker], environment: { QUEUE_MAX_LENGTH: '1' } });
  const noting = `
import os
answers = []
def note(response):
    answers.append([response.status_code, response.headers.get("x-should-retry")])
    if response.status_code == 503:
        with openai.DefaultHttpxClient() as other:
            other.delete(os.environ["OPENAI_BASE_URL"] + "/predict/" + "WAITING")
client = OpenAI(http_client=openai.DefaultHttpxClient(event_hooks={"response": [note]}))
`;
  const canceled = run(
    `${noting}
try:
    client.chat.completions.create(**ask)
except openai.UnprocessableEntityError as error:
    say(error.code, answers)
`,
    one,
  );
  await expect.poll(() => storedIds(one)).toHaveLength(1);
  const [id] = await storedIds(one);
  await fetch(`${one.url}/v1/predict/${id}`, { method: 'DELETE' });
  expect(await canceled).toEqual([['request_canceled', [[422, 'false']]]]);
  expect(await storedIds(one)).toEqual([id]);
  const body = JSON.stringify({ prompt: 'a fox' });
  const headers = { 'content-type': 'application/json' };
  const submitted = await fetch(`${one.url}/v1/predict`, { method: 'POST', headers, body });
  const { request_id: waiting } = (await submitted.json()) as { request_id: string };
  const answering = run(
    `${noting.replace('WAITING', waiting)}
say(client.chat.completions.create(**ask).choices[0].message.content, answers)
`,
    one,
  );
  expect(await ended(one.url, waiting)).toBe('canceled');
  await one.start('batch-former');
  expect(await answering).toEqual([
    [
      answer,
      [
        [503, null],
        [200, null],
      ],
    ],
  ]);
});
