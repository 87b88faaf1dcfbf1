/** OpenAI's unmodified Python SDK with the text models in models/. */
import { readFile } from 'node:fs/promises';
import { allKeys } from '@darkroom/testing';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { makeCaller } from '../e2e/caller-model.ts';
import { ended, poll, submit } from '../e2e/client.ts';
import { createLookingServer, looker } from '../e2e/looking-server.ts';
import { writer } from '../e2e/shared-system.ts';
import { openSystem, longWorkerTtl, startSystem, stopSystem, type System } from '../e2e/system.ts';
import { installOpenaiPython, runOpenaiPython } from './openai-python.ts';

let system: System;
beforeAll(async () => {
  const [caller] = await Promise.all([makeCaller(), installOpenaiPython()]);
  const workers = ['models/emoji-writer', 'models/emoji-writer-diffusion', caller].map((directory) => ({
    name: 'worker' as const,
    environment: { MODEL_DIR: directory },
  }));
  system = await startSystem({ parts: ['api', 'batch-former', 'janitor', ...workers], environment: longWorkerTtl });
}, 600_000);
afterAll(() => stopSystem(system));

/** Returns the ids of all stored requests of the writer. */
async function storedIds({ store }: System): Promise<string[]> {
  const prefix = store.keysOf(writer).request('');
  const keys = await allKeys(store);
  return keys.filter((key) => key.startsWith(`${prefix}${writer}-`)).map((key) => key.slice(prefix.length));
}

/** Runs a Python program after the common prelude. Returns the values of each `emit` call. */
async function run(program: string, { url } = system): Promise<unknown[]> {
  const prelude = `
import asyncio, json
import openai
from openai import OpenAI, AsyncOpenAI

client = OpenAI()
body = dict(model="emoji-writer", messages=[{"role": "user", "content": "something sweet for a birthday party"}])
emit = lambda *values: print(json.dumps(values))
`;
  const lines = (await runOpenaiPython(prelude + program, url)).trim().split('\n');
  return lines.map((line): unknown => JSON.parse(line));
}

const answer = 'a birthday cake on a pink background';

it('returns the same text and usage for a chat completion and its stream, and logprobs of all tokens', async () => {
  const [full, chunks, tokens] = (await run(`
chat = client.chat.completions.create(**body)
emit(chat.choices[0].message.content, chat.choices[0].finish_reason, chat.usage.total_tokens, chat._request_id)
with client.chat.completions.create(**body, stream=True, stream_options={"include_usage": True}) as stream:
    chunks = list(stream)
emit([chunk.choices[0].delta.content for chunk in chunks if chunk.choices], chunks[-1].usage.total_tokens)
chat = client.chat.completions.create(**body, logprobs=True, top_logprobs=2)
emit([token.token for token in chat.choices[0].logprobs.content])
`)) as [[string, string, number, string], [(string | null)[], number], [string[]]];
  const [text, reason, total, id] = full;
  expect([text, reason]).toEqual([answer, 'stop']);
  expect(await poll(system.url, id)).toMatchObject({ status: 'succeeded', usage: { total_tokens: total } });
  expect(chunks[0].join('')).toBe(answer);
  expect([chunks[0][0], chunks[0].at(-1)]).toEqual(['', null]);
  expect(chunks[1]).toBe(total);
  expect(tokens[0].join('')).toBe(answer);
});

it('supports AsyncOpenAI, final completions of streams, and fields of Darkroom in extra_body', async () => {
  expect(
    await run(`
async def main():
    client = AsyncOpenAI()
    calls = [client.chat.completions.create(**body, n=2, seed=5, temperature=1) for _ in range(4)]
    answers = await asyncio.gather(*calls)
    emit(len({tuple(choice.message.content for choice in each.choices) for each in answers}))
    async with client.chat.completions.stream(**body) as stream:
        emit((await stream.get_final_completion()).choices[0].message.content)

asyncio.run(main())
emit(client.chat.completions.create(**body, stop=["ake on a pi"], extra_body={"top_k": 5}).choices[0].message.content)
`),
  ).toEqual([[1], [answer], ['a birthday c']]);
});

it('parses structured outputs and tool calls into pydantic models', async () => {
  const [parsed, called, responded] = await run(`
from enum import Enum
from pydantic import BaseModel

class Color(str, Enum):
    red = "red"
    blue = "blue"

class Image(BaseModel):
    """An image."""
    color: Color
    big: bool

options = dict(**{**body, "max_tokens": 200})
image = client.chat.completions.parse(**options, response_format=Image).choices[0].message.parsed
emit(isinstance(image, Image))
tool = openai.pydantic_function_tool(Image, name="draw")
choice = {"type": "function", "function": {"name": "draw"}}
chat = client.chat.completions.parse(**{**options, "model": "emoji-writer-caller"}, tools=[tool], tool_choice=choice)
[call] = chat.choices[0].message.tool_calls
emit(call.function.name, isinstance(call.function.parsed_arguments, Image), chat.choices[0].finish_reason)
response = client.responses.parse(model="emoji-writer", input="a fox", max_output_tokens=200, text_format=Image)
emit(isinstance(response.output_parsed, Image))
`);
  expect([parsed, called, responded]).toEqual([[true], ['draw', true, 'tool_calls'], [true]]);
});

it('creates and streams a legacy text completion', async () => {
  const [[full, chunks]] = (await run(`
body = dict(model="emoji-writer", prompt="<|im_start|>assistant\\na bird on a", max_tokens=8)
full = client.completions.create(**body).choices[0].text
emit(full, [chunk.choices[0].text for chunk in client.completions.create(**body, stream=True)])
`)) as [[string, string[]]];
  expect(full).toBe(' green background');
  expect(chunks.join('')).toBe(full);
});

it('creates and streams responses, and resumes a stream with starting_after', async () => {
  const [[text, total, id], [streamed, rest, again]] = (await run(`
body = dict(model="emoji-writer", input="something sweet for a birthday party")
made = client.responses.create(**body)
assert client.responses.retrieve(made.id).output_text == made.output_text
emit(made.output_text, made.usage.total_tokens, made._request_id)
text = lambda events: "".join(event.delta for event in events if event.type == "response.output_text.delta")
events = list(client.responses.create(**body, stream=True))
middle = max(at for at, event in enumerate(events) if event.type == "response.output_text.delta") - 1
resumed = client.responses.retrieve(events[-1].response.id, stream=True, starting_after=events[middle].sequence_number)
emit(text(events), text(events[middle + 1 :]), text(resumed))
`)) as [[string, number, string], [string, string, string]];
  expect(text).toBe(answer);
  expect(await poll(system.url, id)).toMatchObject({ status: 'succeeded', usage: { total_tokens: total } });
  expect([streamed, again]).toEqual([answer, rest]);
  expect(rest).not.toBe('');
});

it('creates responses in the background, streams and cancels them', async () => {
  const [[first, done], [started, canceled, later]] = (await run(`
body = dict(model="emoji-writer-diffusion", input="something sweet for a birthday party", background=True)

async def main():
    client = AsyncOpenAI()
    made = await client.responses.create(**body)
    async for event in await client.responses.retrieve(made.id, stream=True):
        pass
    emit(made.status, event.response.output_text)

asyncio.run(main())
slow = client.responses.create(**body, max_output_tokens=200, extra_body={"ignore_eos": True})
canceled = client.responses.cancel(slow.id)
emit(slow.status, canceled.status, client.responses.retrieve(slow.id).status)
`)) as [[string, string], [string, string, string]];
  const begun = expect.stringMatching(/^(?:queued|in_progress)$/) as string;
  expect([first, done]).toEqual([begun, answer]);
  expect([started, canceled, later]).toEqual([begun, 'cancelled', 'cancelled']);
});

it('runs the Python example of docs/text.md', async () => {
  const document = await readFile(new URL('../../docs/text.md', import.meta.url), 'utf8');
  const [, program] = /```python\n(.*?)```/s.exec(document)!;
  const printed = await runOpenaiPython(program!.replaceAll('http://127.0.0.1:8080', system.url), system.url);
  expect(printed).toBe(`${answer}\n${answer}`);
});

it('reports a prompt that exceeds the context, and cancels the request when the client closes its stream', async () => {
  const [wrong, [id]] = (await run(`
try:
    client.chat.completions.create(**{**body, "messages": [{"role": "user", "content": "sweet " * 300}]}, stream=True)
except openai.BadRequestError as error:
    emit(error.code, error.param, error.type)
response = client.chat.completions.with_raw_response.create(
    **body, stream=True, n=10, max_tokens=230, extra_body={"ignore_eos": True}
)
stream = response.parse()
next(iter(stream))
stream.close()
emit(response.headers["x-request-id"])
`)) as [unknown[], [string]];
  expect(wrong).toEqual(['context_length_exceeded', 'messages', 'invalid_request_error']);
  await expect.poll(() => poll(system.url, id)).toMatchObject({ status: 'canceled' });
});

it('the SDK retries when the queue is full (503), but not when its request is canceled (422)', async () => {
  const worker = { name: 'worker', environment: { MODEL_DIR: `models/${writer}` } } as const;
  // Without a batch-former, requests stay queued.
  const shortQueue = await openSystem({ parts: ['api', 'janitor', worker], environment: { QUEUE_MAX_LENGTH: '1' } });
  const recordStatuses = `
import os
statuses = []
def record(response):
    statuses.append([response.status_code, response.headers.get("x-should-retry")])
    if response.status_code == 503:
        with openai.DefaultHttpxClient() as other:
            other.delete(os.environ["OPENAI_BASE_URL"] + "/predict/" + "WAITING")
client = OpenAI(http_client=openai.DefaultHttpxClient(event_hooks={"response": [record]}))
`;
  const canceledRun = run(
    `${recordStatuses}
try:
    client.chat.completions.create(**body)
except openai.UnprocessableEntityError as error:
    emit(error.code, statuses)
`,
    shortQueue,
  );
  await expect.poll(() => storedIds(shortQueue)).toHaveLength(1);
  const [id] = await storedIds(shortQueue);
  await fetch(`${shortQueue.url}/v1/predict/${id}`, { method: 'DELETE' });
  expect(await canceledRun).toEqual([['request_canceled', [[422, 'false']]]]);
  expect(await storedIds(shortQueue)).toEqual([id]);
  const waitingId = await submit(shortQueue.url, { prompt: 'a fox' });
  const retriedRun = run(
    `${recordStatuses.replace('WAITING', waitingId)}
emit(client.chat.completions.create(**body).choices[0].message.content, statuses)
`,
    shortQueue,
  );
  expect(await ended(shortQueue.url, waitingId)).toBe('canceled');
  await shortQueue.start('batch-former');
  expect(await retriedRun).toEqual([
    [
      answer,
      [
        [503, null],
        [200, null],
      ],
    ],
  ]);
});

it('asks about an image in a chat and in a response', async () => {
  const server = createLookingServer();
  const upstream = await server.start();
  onTestFinished(() => server.stop().then(() => {}));
  const worker = {
    name: 'worker',
    environment: { EXECUTOR: 'http', UPSTREAM_URL: upstream, MODEL_ID: looker },
  } as const;
  const looking = await openSystem({ parts: ['api', 'batch-former', 'janitor', worker], environment: longWorkerTtl });
  const data = await sharp({ create: { width: 60, height: 40, channels: 3, background: '#f00' } })
    .png()
    .toBuffer();
  const answers = await run(
    `
url = "data:image/png;base64,${data.toString('base64')}"
chat = client.chat.completions.create(model="${looker}", messages=[{"role": "user", "content": [
    {"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]}])
emit(chat.choices[0].message.content)
response = client.responses.create(model="${looker}", input=[{"role": "user", "content": [
    {"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": url}]}])
emit(response.output_text)
`,
    looking,
  );
  expect(answers).toEqual([['An image of 60x40'], ['An image of 60x40']]);
});
