/** Function calls in responses: their events from different logs, and conversations that continue after them. */
import type { StoredEvent } from '@darkroom/core';
import { describe, expect, it } from 'vitest';
import { runNext } from '../testing/fake-worker.ts';
import { finish, responsesPath, viewOf } from '../testing/open-response.ts';
import { postJson, caller, openCallerApi, writeTokens } from '../testing/open-text-api.ts';
import { afterNumber } from './after-number.ts';
import { type ResponseEvent, ResponseReader } from './response-events.ts';
import { exampleRequest } from './response-view.ts';

const callMarkup = {
  open: '',
  begin: '<tool_call>\n{"name": "',
  middle: '", "arguments": ',
  end: '}\n</tool_call>',
  separator: '\n',
  close: '',
};
const request = { ...exampleRequest, input: { ...(exampleRequest.input as object), callMarkup } };
const { id } = request;

const callText = (name: string, json: string) => `<tool_call>\n{"name": "${name}", "arguments": ${json}}\n</tool_call>`;
const red = '{"color": "red 🌙"}';
const fullText = `Let me see.\n${callText('draw', red)}\n${callText('sing', '{}')}\nDone.`;

function logOf(text: string, borders: readonly number[], reason: string): StoredEvent[] {
  const output = { index: 0, contentType: 'text/plain', bytes: 9, chunks: 1, finish_reason: reason };
  const cuts = [0, ...borders, text.length];
  const pieces = cuts.slice(1).map((to, at) => ({
    type: 'delta' as const,
    index: 0,
    offset: cuts[at]!,
    text: text.slice(cuts[at], to),
    facts: { ids: '5,' },
  }));
  const entries = [
    { type: 'queued' as const, position: 0, attempt: 1 },
    { type: 'started' as const, attempt: 1 },
    ...pieces,
    { type: 'output' as const, output, chunkIndex: 0 },
    { type: 'succeeded' as const, outputs: [output] },
  ];
  return entries.map((entry, at) => ({ ...entry, sequence: at + 1, timestampMs: 1_795_225_246_318 }));
}

function eventsOf(text: string, borders: readonly number[], reason = 'stop'): ResponseEvent[] {
  const reader = new ResponseReader(request);
  return logOf(text, borders, reason).flatMap((event) => reader.read(event));
}

const short = ({ type, sequence_number: number, output_index: place, delta }: ResponseEvent) =>
  [number, type.replace('response.', ''), place, delta].filter((value) => value !== undefined);

it("events of calls come in OpenAI's order, numbered by their position in the text", () => {
  const events = eventsOf(fullText, []);
  const n = 4 + 'Let me see.'.length;
  const a = n + 4 + red.length;
  expect(events.map((event) => short(event))).toEqual([
    [0, 'created'],
    [1, 'queued'],
    [2, 'in_progress'],
    [3, 'output_item.added', 0],
    [4, 'content_part.added', 0],
    [n, 'output_text.delta', 0, 'Let me see.'],
    [n + 1, 'output_text.done', 0],
    [n + 2, 'content_part.done', 0],
    [n + 3, 'output_item.done', 0],
    [n + 4, 'output_item.added', 1],
    [a, 'function_call_arguments.delta', 1, red],
    [a + 1, 'function_call_arguments.done', 1],
    [a + 2, 'output_item.done', 1],
    [a + 3, 'output_item.added', 2],
    [a + 5, 'function_call_arguments.delta', 2, '{}'],
    [a + 6, 'function_call_arguments.done', 2],
    [a + 7, 'output_item.done', 2],
    [a + 8, 'output_item.added', 3],
    [a + 9, 'content_part.added', 3],
    [a + 14, 'output_text.delta', 3, 'Done.'],
    [a + 15, 'output_text.done', 3],
    [a + 16, 'content_part.done', 3],
    [a + 17, 'output_item.done', 3],
    [a + 18, 'completed'],
  ]);
  const call = (at: number, name: string, json: string) => ({
    id: `fc_${id}_${at}`,
    type: 'function_call',
    status: 'completed',
    call_id: `call_${id}_0_${at}`,
    name,
    arguments: json,
  });
  expect(events.at(-1)).toMatchObject({
    response: {
      status: 'completed',
      output: [
        { id: `msg_${id}`, type: 'message', status: 'completed', content: [{ text: 'Let me see.' }] },
        call(0, 'draw', red),
        call(1, 'sing', '{}'),
        { id: `msg_${id}_3`, type: 'message', content: [{ text: 'Done.' }] },
      ],
    },
  });
});

/** Returns the texts that clients assemble from the deltas, and number and type of all other events. */
function assemble(events: readonly ResponseEvent[]) {
  const texts: string[] = [];
  const others: unknown[] = [];
  for (const { type, sequence_number: number, output_index: place, delta } of events)
    if (typeof delta === 'string') texts[place as number] = (texts[place as number] ?? '') + delta;
    else others.push([number, type]);
  return { texts, others };
}

it('events of calls are the same except for the split into deltas, and resume after any event without loss', () => {
  const whole = eventsOf(fullText, []);
  const expected = assemble(whole);
  for (let border = 1; border < fullText.length; border++) {
    const events = eventsOf(fullText, [border]);
    expect(assemble(events)).toEqual(expected);
    expect(events.filter(({ delta }) => delta === undefined)).toEqual(whole.filter(({ delta }) => delta === undefined));
    for (const { sequence_number: number } of events) {
      const seen = events.filter((event) => event.sequence_number <= number);
      expect(assemble([...seen, ...whole.flatMap((event) => afterNumber(event, number) ?? [])])).toEqual(expected);
    }
  }
});

it('a call that is cut off is incomplete', () => {
  const cut = fullText.slice(0, fullText.indexOf('red'));
  const events = eventsOf(cut, [], 'length');
  expect(events.at(-1)).toMatchObject({
    type: 'response.incomplete',
    response: { output: [{ status: 'completed' }, { status: 'incomplete', arguments: '{"color": "' }] },
  });
  const reader = new ResponseReader(request);
  for (const event of logOf(cut, [], 'stop').slice(0, -2)) reader.read(event);
  const sequence = 9;
  expect(reader.response.output).toMatchObject([{ status: 'completed' }, { status: 'in_progress' }]);
  const [last] = reader.read({ type: 'canceled', outputs: [], sequence, timestampMs: 1 });
  expect(last).toMatchObject({ response: { output: [{ status: 'completed' }, { status: 'incomplete' }] } });
});

it("the response has the rerun's calls if a rerun writes a different text, wherever the first run stopped", () => {
  const other = `Let me do.\n${callText('draw', '{"color": "rose"}')}\nNow.\n${callText('dance', '{}')}`;
  const asOther = eventsOf(other, []).at(-1)!['response'];
  const facts = { ids: '5,' };
  for (let end = 1; end <= fullText.length; end++) {
    const first = fullText.slice(0, end);
    let shared = 0;
    while (shared < end && first[shared] === other[shared]) shared++;
    const [queued, started, , ...rest] = logOf(other, [], 'stop');
    for (const offset of new Set([0, shared >> 1, shared])) {
      const log = [
        queued!,
        started!,
        { type: 'delta' as const, index: 0, offset: 0, text: first, facts, sequence: 3, timestampMs: 1 },
        { type: 'reset' as const, index: 0, offset, sequence: 4, timestampMs: 1 },
        { type: 'delta' as const, index: 0, offset, text: other.slice(offset), facts, sequence: 5, timestampMs: 1 },
        ...rest,
      ];
      const reader = new ResponseReader(request);
      const last = log.flatMap((event) => reader.read(event)).at(-1)!;
      expect(last).toEqual(eventsOf(other, []).at(-1));
      expect(reader.response).toEqual(asOther);
    }
  }
});

it('does not report a retraction of text that was never emitted', () => {
  const at = { index: 0, timestampMs: 1 };
  const facts = { ids: '5,' };
  const emitted = fullText.slice(0, fullText.indexOf('<tool_call>'));
  const held = `${emitted}<tool_c`;
  const [queued, started, , ...rest] = logOf(held, [], 'stop');
  const reread = (length: number) => {
    let retractions = 0;
    const reader = new ResponseReader(request, { onRetracted: () => (retractions += 1) });
    const log = [
      queued!,
      started!,
      { type: 'delta' as const, ...at, offset: 0, text: held, facts, sequence: 3 },
      { type: 'reset' as const, ...at, offset: length, sequence: 4 },
      { type: 'delta' as const, ...at, offset: length, text: ' And so on.', facts, sequence: 5 },
      ...rest,
    ];
    const events = log.flatMap((event) => reader.read(event));
    const text = events.flatMap(({ type, delta }) => (type === 'response.output_text.delta' ? [delta] : [])).join('');
    return { retractions, text };
  };
  expect(reread(emitted.length)).toEqual({ retractions: 0, text: `${emitted} And so on.` });
  expect(reread(emitted.length - 2)).toMatchObject({ retractions: 1 });
});

describe('a conversation', () => {
  const parameters = { type: 'object', properties: { color: { type: 'string' } } };
  const tools = [{ type: 'function', name: 'draw', parameters }];
  const body = { model: caller.id, tools, background: true };
  const input = [{ role: 'user', content: 'something cold' }];

  async function open(more: object) {
    const test = await openCallerApi();
    const view = await viewOf(await postJson(test, responsesPath, { ...body, input, ...more }));
    return { test, view, run: await runNext(test.store, caller.id) };
  }

  it('shows tools, tool_choice and text.format of the request', async () => {
    const tool_choice = { type: 'function', name: 'draw' };
    const { view } = await open({ tool_choice, parallel_tool_calls: false });
    expect(view).toMatchObject({ tools, tool_choice, parallel_tool_calls: false, text: { format: { type: 'text' } } });
    const format = { type: 'json_schema', name: 'x', schema: parameters, strict: true };
    const { view: other } = await open({ tools: [], text: { format } });
    expect(other).toMatchObject({ tools: [], tool_choice: 'auto', text: { format } });
  });

  it('continues after calls by items, by item_reference and by previous_response_id', async () => {
    const { test, view, run } = await open({});
    const text = `See.\n${callText('draw', '{"color": "red"}')}`;
    await writeTokens(run, [text]);
    await finish(run, text);
    const { output } = await viewOf(await test.api.request(`${responsesPath}/${view.id}`));
    const given = { type: 'function_call_output', call_id: `call_${view.id.slice(5)}_0_0`, output: 'done' };
    const references = output.map(({ id: item }) => ({ type: 'item_reference', id: item }));
    const bodies = [
      { input: [...input, ...output, given] },
      { input: [...input, ...references, given] },
      { input: [given], previous_response_id: view.id },
    ];
    const results = await Promise.all(
      bodies.map(async (more) => {
        const { id: next } = await viewOf(await postJson(test, responsesPath, { ...body, ...more }));
        const stored = await test.store.redis.get(test.store.keysOf(caller.id).input(next.slice(5)));
        const { input: made } = JSON.parse(stored!) as { input: { prompt: number[]; said: { messages: object[] } } };
        return { prompt: made.prompt, messages: made.said.messages };
      }),
    );
    expect(results[0]!.messages).toMatchObject([
      input[0]!,
      { role: 'assistant', content: 'See.', tool_calls: [{ function: { name: 'draw' } }] },
      { role: 'tool', content: 'done', tool_call_id: given.call_id },
    ]);
    expect(results[1]).toEqual(results[0]);
    expect(results[2]).toEqual(results[0]);
    const unknown = await postJson(test, responsesPath, {
      ...body,
      input: [{ type: 'item_reference', id: `${output[1]!.id}9` }],
    });
    expect([unknown.status, await unknown.text()]).toEqual([
      400,
      expect.stringContaining('expected the id of an item of the response'),
    ]);
  });
});
