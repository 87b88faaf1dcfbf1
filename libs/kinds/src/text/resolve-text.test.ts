import { readFileSync } from 'node:fs';
import { requestPolicy, textCard } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import type { RequestPolicy } from '../request/request-fields.ts';
import { createTextCodec, encodeTextCodecFiles } from './codec/text-codec.ts';
import type { TextCard, TextInput } from './form/text-input.ts';
import { text } from './text.ts';

const model = new URL('../../../../models/emoji-writer/', import.meta.url);
const read = (file: string): unknown => JSON.parse(readFileSync(new URL(file, model), 'utf8'));
const document = encodeTextCodecFiles({ tokenizer: read('tokenizer.json'), config: read('tokenizer_config.json') });

/** Adds one special token more than there are logits, as Gemma 3 has it. */
function withImageToken() {
  const special = '<image_soft_token>';
  const tokenizer = read('tokenizer.json') as { added_tokens: object[] };
  const [known] = tokenizer.added_tokens;
  const added_tokens = [...tokenizer.added_tokens, { ...known, id: 6144, content: special, special: true }];
  return { special, files: { tokenizer: { ...tokenizer, added_tokens }, config: read('tokenizer_config.json') } };
}

const card: TextCard = { ...textCard, id: 'emoji-writer', codec: 'of-emoji-writer' };
const blocks: TextCard = { ...card, mode: 'block_diffusion', block: { size: 8, confidenceThreshold: 0.9 } };

const userMessage = { role: 'user', content: 'something cold' };

const reads: string[] = [];
const options: RequestPolicy = {
  ...requestPolicy,
  readAsset: (id, name) => {
    reads.push(`${id} ${name}`);
    return Promise.resolve(document);
  },
};

async function inputOf(body: object, of = card) {
  const result = await text.resolve(body, of, options);
  if (result.status === 'invalid') throw new Error(result.problems.map(({ message }) => message).join('; '));
  return result.request.input as TextInput;
}

async function problemsOf(body: object, of = card): Promise<string[]> {
  const result = await text.resolve(body, of, options);
  return result.status === 'invalid' ? result.problems.map(({ code, message }) => `${code}: ${message}`) : [];
}

describe('resolving a body for a text model', () => {
  it('yields token ids and fills in every default', async () => {
    const messages = [{ role: 'user', content: 'something cold' }];
    const input = await inputOf({ messages });
    // <|im_start|>
    expect(input.prompt[0]).toBe(1);
    expect(input).toEqual({
      prompt: input.prompt,
      n: 1,
      maxTokens: 24,
      temperature: 0,
      topP: 1,
      topK: 0,
      minP: 0,
      presencePenalty: 0,
      frequencyPenalty: 0,
      logitBias: {},
      seed: 42,
      stop: [],
      ignoreEos: false,
    });
    expect(text.demandOf(input)).toMatchObject({
      shapeKey: 'text',
      outputs: 1,
      slots: input.prompt.length + 24,
      cost: input.prompt.length + 24,
    });
    expect(await inputOf({ prompt: [...input.prompt] })).toEqual(input);
    expect((await inputOf({ prompt: [5, 6, 7], max_tokens: 9, stop: 'x', n: 2 })).stop).toEqual(['x']);
  });

  it('defaults max_tokens to the rest of the context', async () => {
    const prompt = Array.from({ length: 250 }, () => 5);
    expect((await inputOf({ prompt })).maxTokens).toBe(6);
  });

  it('does not block the event loop while it tokenizes a long prompt', async () => {
    const of = { ...card, maxModelTokens: 100_000, codec: 'of-long' };
    await inputOf({ prompt: 'a' }, of);
    const prompt = 'abcdefghijk'.repeat(5000);
    let turns = 0;
    const turn = (): void => void ((turns += 1), (next = setImmediate(turn)));
    let next = setImmediate(turn);
    const { prompt: ids } = await inputOf({ prompt }, of);
    clearImmediate(next);
    expect(turns).toBeGreaterThan(10);
    expect(ids).toEqual(createTextCodec(document).encode(prompt, { addSpecialTokens: true }));
    expect(await problemsOf({ prompt, max_tokens: 99_999 }, of)).toEqual([
      expect.stringMatching(`and the prompt has ${ids.length}$`),
    ]);
  });

  it('stops tokenizing once the prompt cannot fit the context', async () => {
    const of = { ...card, maxModelTokens: 5000, codec: 'of-long' };
    const prompt = 'abcdefghijk'.repeat(5000);
    expect(createTextCodec(document).encode(prompt, { addSpecialTokens: true }).length).toBeGreaterThan(20_000);
    expect(await problemsOf({ prompt }, of)).toEqual([
      "context_length_exceeded: prompt has at least 10000 tokens, expected at most 4999: this model's maximum context length is 5000 tokens, which emoji-writer reads and writes together",
    ]);
  });

  it('rejects tokens that the tokenizer has and the model does not', async () => {
    const { special: token, files } = withImageToken();
    const readAsset = () => Promise.resolve(encodeTextCodecFiles(files));
    const resolve = async (body: object) => {
      const result = await text.resolve(body, { ...card, codec: 'with a token more' }, { ...options, readAsset });
      return result.status === 'invalid' ? result.problems : result.request.input;
    };
    expect(await resolve({ prompt: 'a fox' })).toMatchObject({ prompt: expect.any(Array) as number[] });
    const expected = 'expected tokens below 6144, as many as emoji-writer has';
    const refused = (field: string) => {
      const message = `${field}: has "${token}", token 6144, ${expected}`;
      return [{ field, code: 'invalid_value', message }];
    };
    expect(await resolve({ prompt: `a fox ${token}` })).toEqual(refused('prompt'));
    expect(await resolve({ messages: [{ role: 'user', content: token }] })).toEqual(refused('messages'));
    expect(await resolve({ prompt: [5, 6144] })).toMatchObject([{ field: 'prompt.1', code: 'invalid_value' }]);
  });

  it.each(['emoji-writer', 'emoji-writer-diffusion'])('rejects roles that %s was not trained on', async (name) => {
    const at = new URL(`../${name}/`, model);
    const load = (file: string): unknown => JSON.parse(readFileSync(new URL(file, at), 'utf8'));
    const own = encodeTextCodecFiles({ tokenizer: load('tokenizer.json'), config: load('tokenizer_config.json') });
    const user = { role: 'user', content: 'something cold' };
    const ask = async (role: string) => {
      const messages = [user, { role, content: 'a snowman', tool_call_id: 'call_1' }, user];
      const of = { ...card, codec: `of-shipped-${name}` };
      const result = await text.resolve({ messages }, of, { ...options, readAsset: () => Promise.resolve(own) });
      return result.status === 'invalid' ? result.problems : 'taken';
    };
    for (const role of ['system', 'user', 'assistant']) expect(await ask(role)).toBe('taken');
    for (const role of ['robot', 'tool'])
      expect(await ask(role)).toEqual([
        {
          field: 'messages',
          code: 'invalid_value',
          message:
            "messages: the model's template does not take them: expected one of the roles system, user and assistant",
        },
      ]);
  });

  it.each([
    [7, 7],
    [2 ** 32 - 1, 2 ** 32 - 1],
    [-1, 42],
    [undefined, 42],
    [2 ** 32, 1],
    [-2, 1],
    [2 ** 53, 2 ** 21],
    [-(2 ** 63), 2 ** 31],
  ])('folds seed %s to the 32-bit seed %s', async (seed, expected) => {
    expect((await inputOf({ prompt: 'a', seed })).seed).toBe(expected);
  });

  it('rejects seeds of more than 64 bits and fractional seeds', async () => {
    for (const seed of [2 ** 65, -(2 ** 64), 0.5])
      expect(await problemsOf({ prompt: 'a', seed })).toEqual([
        expect.stringContaining('a whole number of 64 bits, or -1'),
      ]);
  });

  it('loads the codec of a model once', async () => {
    const before = reads.length;
    await inputOf({ prompt: 'a' }, { ...card, codec: 'another' });
    await Promise.all([1, 2, 3].map(() => inputOf({ prompt: 'b' }, { ...card, codec: 'another' })));
    expect(reads.slice(before)).toEqual(['emoji-writer another']);
  });

  it('loads a codec again after a failure', async () => {
    const failing = { ...options, readAsset: () => Promise.reject(new Error('away')) };
    const of = { ...card, codec: 'away at first' };
    await expect(text.resolve({ prompt: 'a' }, of, failing)).rejects.toThrow('away');
    expect((await inputOf({ prompt: 'a' }, of)).prompt.length).toBeGreaterThan(0);
  });
});

describe('the tokenizer of a model', () => {
  const tokenizer = read('tokenizer.json') as object;
  const withTokenizer = (changes: object): RequestPolicy => ({
    ...options,
    readAsset: () =>
      Promise.resolve(
        encodeTextCodecFiles({ tokenizer: { ...tokenizer, ...changes }, config: read('tokenizer_config.json') }),
      ),
  });

  it('adds its start token to a prompt, but not to messages, whose template has it', async () => {
    const start = '<|im_start|>';
    const first = {
      type: 'TemplateProcessing',
      single: [{ SpecialToken: { id: start, type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
      pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }],
      special_tokens: { [start]: { id: start, ids: [1], tokens: [start] } },
    };
    const idsOf = async (body: object) => {
      const of = { ...card, codec: 'with a first token' };
      const result = await text.resolve(body, of, withTokenizer({ post_processor: first }));
      return result.status === 'resolved' ? (result.request.input as TextInput).prompt.slice(0, 2) : result.problems;
    };
    expect(await idsOf({ prompt: 'a' })).toEqual([1, 68]);
    expect(await idsOf({ messages: [{ role: 'user', content: 'a' }] })).toEqual([1, 285]);
  });

  it('may normalize a prompt to nothing, which is rejected', async () => {
    const normalizer = { type: 'Strip', strip_left: true, strip_right: true };
    const of = { ...card, codec: 'that strips' };
    expect(await text.resolve({ prompt: '  ' }, of, withTokenizer({ normalizer }))).toMatchObject({
      status: 'invalid',
      problems: [{ field: 'prompt', message: 'prompt is "  ", expected at least one token' }],
    });
  });

  it('is evicted after sixteen other codecs were loaded', async () => {
    const before = reads.length;
    for (let count = 0; count <= 16; count++)
      await inputOf({ prompt: 'a' }, { ...card, codec: `one of many ${count}` });
    await inputOf({ prompt: 'a' }, { ...card, codec: 'one of many 16' });
    expect(reads.length - before).toBe(17);
    await inputOf({ prompt: 'a' }, { ...card, codec: 'one of many 0' });
    expect(reads.length - before).toBe(18);
  });
});

describe('rejects with the field, the value received and what was expected:', () => {
  const messages = [{ role: 'user', content: 'hi' }];
  it.each<[string, object, string, TextCard?]>([
    ['neither prompt nor messages', {}, 'missing_field: prompt is missing, expected text, or messages instead'],
    [
      'both prompt and messages',
      { prompt: 'a', messages },
      'invalid_value: messages is [{"role":"user","content":"hi"}], expected nothing beside prompt',
    ],
    [
      'no messages',
      { messages: [] },
      'invalid_value: messages is [], expected a list of 1 to 10000 messages {"role", "content"}',
    ],
    [
      'a message that is null',
      { messages: [null] },
      'invalid_value: messages.0 is null, expected a message {"role", "content"}',
    ],
    [
      'a list in place of a message',
      { messages: [[]] },
      'invalid_value: messages.0 is [], expected a message {"role", "content"}',
    ],
    [
      'content that is not a string',
      { messages: [{ role: 'user', content: 7 }] },
      'invalid_value: messages.0.content is 7, expected text, or a list of parts {"type": "text", "text"} or {"type": "image_url", "image_url"}',
    ],
    [
      'a message without content',
      { messages: [{ role: 'user' }] },
      'missing_field: messages.0.content is missing, expected text, or a list of parts {"type": "text", "text"} or {"type": "image_url", "image_url"}',
    ],
    [
      'no token ids',
      { prompt: [] },
      'invalid_value: prompt is [], expected text of 1 to 1000000 characters, or a list of ids of tokens',
    ],
    [
      'a token id below 0',
      { prompt: [-1] },
      'invalid_value: prompt.0 is -1, expected a whole number from 0 to 2147483648',
    ],
    [
      'ids beyond the vocabulary',
      { prompt: [1, 6144] },
      'invalid_value: prompt.1 is 6144, expected an id below 6144, as many as emoji-writer has',
    ],
    [
      'a bias beyond the vocabulary',
      { prompt: 'a', logit_bias: { 6144: 1 } },
      'invalid_value: logit_bias is "6144", expected an id below 6144, as many as emoji-writer has',
    ],
    [
      '1,025 biases',
      { prompt: 'a', logit_bias: Object.fromEntries(Array.from({ length: 1025 }, (_, id) => [id, 1])) },
      'invalid_value: logit_bias is {"0":1,"1":1,"2":1,"3":1,"4":1,"5":1,"6":1,"7":1,"8":1,"9":1… (8116 characters), expected an object of at most 1024 numbers from -100 to 100 by ids of tokens',
    ],
    [
      '1,025 invalid biases, without parsing each',
      { prompt: 'a', logit_bias: Object.fromEntries(Array.from({ length: 1025 }, (_, id) => [`id ${id}`, ''])) },
      'invalid_value: logit_bias is {"id 0":"","id 1":"","id 2":"","id 3":"","id 4":"","id 5":""… (12216 characters), expected an object of at most 1024 numbers from -100 to 100 by ids of tokens',
    ],
    [
      'a long list with items that are not ids',
      { prompt: [0, ...Array.from({ length: 2000 }, () => 'a')], temperature: 9 },
      'invalid_value: prompt is [0,"a","a","a","a","a","a","a","a","a","a","a","a","a","a","… (8003 characters), expected text of 1 to 1000000 characters, or a list of ids of tokens',
    ],
    [
      'a bias of 101',
      { prompt: 'a', logit_bias: { 5: 101 } },
      'invalid_value: logit_bias.5 is 101, expected a number from -100 to 100',
    ],
    [
      'a temperature of −1',
      { prompt: 'a', temperature: -1 },
      'invalid_value: temperature is -1, expected a number from 0 to 2',
    ],
    ['a top_p of 0', { prompt: 'a', top_p: 0 }, 'invalid_value: top_p is 0, expected a number above 0, at most 1'],
    ['no texts', { prompt: 'a', n: 0 }, 'invalid_value: n is 0, expected a whole number from 1 to 10'],
    [
      'a long stop',
      { prompt: 'a', stop: 'x'.repeat(10_000) },
      `invalid_value: stop is "${'x'.repeat(59)}… (10000 characters), expected a text of 1 to 256 characters, or a list of at most 16`,
    ],
    [
      '17 stop texts',
      { prompt: 'a', stop: Array(17).fill('x') },
      'invalid_value: stop is ["x","x","x","x","x","x","x","x","x","x","x","x","x","x","x"… (69 characters), expected a text of 1 to 256 characters, or a list of at most 16',
    ],
    [
      'top_logprobs alone',
      { prompt: 'a', top_logprobs: 3 },
      'invalid_value: top_logprobs is 3, expected nothing without "logprobs": true',
    ],
    [
      'a block diffusion field for an autoregressive model',
      { prompt: 'a', max_nfe: 3 },
      'invalid_value: max_nfe is 3, expected nothing: emoji-writer writes token by token, and has no blocks',
    ],
    [
      'a confidence threshold for an autoregressive model',
      { prompt: 'a', confidence_threshold: 0.5 },
      'invalid_value: confidence_threshold is 0.5, expected nothing: emoji-writer writes token by token, and has no blocks',
    ],
    [
      'two exclusive ways to keep tokens',
      { prompt: 'a', confidence_threshold: 0.5, tokens_per_step: 2 },
      'invalid_value: tokens_per_step is 2, expected nothing beside confidence_threshold',
      blocks,
    ],
    [
      'messages without a template',
      { messages },
      'invalid_value: messages is [{"role":"user","content":"hi"}], expected nothing: emoji-writer has no template for messages, send a prompt',
      { ...card, hasChatTemplate: false },
    ],
    [
      'a prompt too long',
      { prompt: Array.from({ length: 256 }, () => 5) },
      "context_length_exceeded: prompt has 256 tokens, expected at most 255: this model's maximum context length is 256 tokens, which emoji-writer reads and writes together",
    ],
    [
      'a prompt with too many characters, without tokenizing it',
      { prompt: 'x'.repeat(8705) },
      "context_length_exceeded: prompt has 8705 characters, at least 513 tokens, expected at most 255: this model's maximum context length is 256 tokens, which emoji-writer reads and writes together",
    ],
    [
      'messages that are too long together',
      { messages: Array.from({ length: 1000 }, () => ({ role: 'user', content: 'x'.repeat(1000) })) },
      "context_length_exceeded: messages have 1000000 characters, at least 58824 tokens, expected at most 255: this model's maximum context length is 256 tokens, which emoji-writer reads and writes together",
    ],
    [
      'messages over the character limit only together',
      { messages: [1, 2].map(() => ({ role: 'user', content: 'x'.repeat(600_000) })) },
      `invalid_value: messages is [{"role":"user","content":"${'x'.repeat(33)}… (1200059 characters), expected messages of at most 1000000 characters together`,
    ],
    [
      'max_tokens beyond the context',
      { prompt: [5, 6], max_tokens: 255 },
      "context_length_exceeded: max_tokens is 255, expected at most 254: this model's maximum context length is 256 tokens, which emoji-writer reads and writes together, and the prompt has 2",
    ],
    [
      'a prompt that leaves less than one block',
      { prompt: Array.from({ length: 249 }, () => 5) },
      "context_length_exceeded: prompt has 249 tokens, expected at most 248: this model's maximum context length is 256 tokens, which emoji-writer reads and writes together",
      blocks,
    ],
    [
      'max_tokens beyond the last full block',
      { prompt: [5, 6], max_tokens: 249 },
      "context_length_exceeded: max_tokens is 249, expected at most 248: this model's maximum context length is 256 tokens, which emoji-writer reads and writes together, in blocks of 8, and the prompt has 2",
      blocks,
    ],
    [
      'too many messages, without validating each',
      { messages: Array.from({ length: 10_001 }, () => null) },
      'invalid_value: messages has 10001 messages, expected at most 10000',
    ],
    [
      'too many parts of content, without validating each',
      { messages: [{ role: 'user', content: Array.from({ length: 10_001 }, () => null) }] },
      'invalid_value: messages has 10001 parts of content together, expected at most 10000',
    ],
    [
      'too many calls in one message',
      {
        messages: [
          userMessage,
          { role: 'assistant', content: '', tool_calls: Array.from({ length: 129 }, () => ({})) },
        ],
      },
      'invalid_value: messages.1.tool_calls has 129 calls in one message, expected at most 128',
    ],
    [
      'too many calls together',
      {
        messages: Array.from({ length: 101 }, () => ({
          role: 'assistant',
          tool_calls: Array.from({ length: 100 }, () => ({})),
        })),
      },
      'invalid_value: messages has 10100 tool_calls together, expected at most 10000',
    ],
    [
      'arguments of calls that are too long together',
      { messages: [userMessage, { ...userMessage, tool_calls: [{ x: 'x'.repeat(2_000_000) }] }] },
      'invalid_value: messages has 2000069 characters with all their fields, expected at most 2000000',
    ],
    [
      'tools that are too long together',
      { messages: [userMessage], tools: [{ x: { y: 'x'.repeat(500_000) } }] },
      'invalid_value: tools has 500002 characters with all their parameters, expected at most 500000',
    ],
    [
      'a field name of another system, with a suggestion',
      { prompt: 'a', max_new_tokens: 5 },
      'unknown_field: max_new_tokens is not a field, did you mean max_tokens?',
    ],
  ])('%s', async (_name, body, problem, of) => expect(await problemsOf(body, of)).toEqual([problem]));
});
