import { describe, expect, it, onTestFinished } from 'vitest';
import type { ChatMessage } from '../form/chat-message.ts';
import { PromptReader } from './prompt-reader.ts';
import { PromptThread } from './prompt-thread.ts';
import type { PromptJob, PromptRead } from './read-prompt.ts';
import { createTextCodec, encodeTextCodecFiles } from './text-codec.ts';

const tokenizer = {
  added_tokens: [],
  model: { type: 'WordLevel', vocab: { '<unk>': 0, owl: 1 }, unk_token: '<unk>' },
  decoder: null,
  normalizer: null,
  post_processor: null,
  pre_tokenizer: { type: 'Whitespace' },
};
const limits = { maxTokens: 100_000, maxCharacters: 10_000_000 };
const long = ' '.repeat(9000);
const prompt = (text: string): PromptJob => ({ prompt: text + long, ...limits });
const anHour = 3_600_000;

function documentOf(chatTemplate?: string): Uint8Array {
  return encodeTextCodecFiles({ tokenizer, config: {}, chatTemplate });
}

function openReader(chatTemplate?: string): PromptReader {
  const document = documentOf(chatTemplate);
  const reader = new PromptReader(document, createTextCodec(document));
  onTestFinished(() => reader.close());
  return reader;
}

function openThread(chatTemplate?: string): PromptThread {
  const thread = new PromptThread(documentOf(chatTemplate));
  onTestFinished(() => thread.close());
  return thread;
}

/** An owner whose client stays connected. */
function ownerOf(owner: string, signal = new AbortController().signal) {
  return { owner, signal };
}

describe('a reader of prompts', () => {
  it('reads the long prompts of several owners in turns', async () => {
    const reader = openReader();
    const order: string[] = [];
    const read = async (name: string) => {
      await reader.read(prompt('owl'), ownerOf(name[0]!));
      order.push(name);
    };
    await Promise.all(['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map(read));
    expect(order).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2']);
  });

  it('rejects an owner with too many waiting long prompts as overloaded, and no other owner', async () => {
    const reader = openReader();
    const reads = Array.from({ length: 10 }, () => reader.read(prompt('owl'), ownerOf('a')));
    const other = reader.read(prompt('owl owl'), ownerOf('b'));
    const outcomes = await Promise.allSettled(reads);
    expect(outcomes.map(({ status }) => status)).toEqual([...Array.from({ length: 9 }, () => 'fulfilled'), 'rejected']);
    expect(outcomes.at(-1)).toMatchObject({ reason: { code: 'overloaded' } });
    expect(await other).toEqual({ ids: [1, 1] });
  });

  it('refuses prompts that are too long together, and reads one however long it is', async () => {
    const reader = openReader();
    const huge = { ...prompt('owl'.padEnd(9_000_000)), maxCharacters: 20_000_000 };
    const first = reader.read(huge, ownerOf('a'));
    await expect(reader.read(huge, ownerOf('b'))).rejects.toMatchObject({ code: 'overloaded' });
    expect(await first).toEqual({ ids: [1] });
  });

  it('does not read the prompt of a client that disconnected while it waited', async () => {
    const reader = openReader();
    const gone = new AbortController();
    const first = reader.read(prompt('owl'), ownerOf('a'));
    const left = reader.read(prompt('owl'), ownerOf('b', gone.signal));
    gone.abort();
    await expect(left).rejects.toMatchObject({ code: 'invalid_request' });
    expect(await first).toEqual({ ids: [1] });
  });

  it('reads the same ids on the event loop and in the thread', async () => {
    const reader = openReader('{% for message in messages %}{{ message.content }} {% endfor %}');
    const messages: ChatMessage[] = [{ role: 'user', content: 'owl owl' }];
    const inline = await reader.read({ messages, ...limits });
    const long = messages.map((message) => ({
      ...message,
      content: `${message.content as string}${' '.repeat(9000)}`,
    }));
    expect(await reader.read({ messages: long, ...limits })).toEqual(inline);
    expect(inline).toEqual({ ids: [1, 1] });
  });

  it('reports the length of a rendered chat that exceeds maxCharacters', async () => {
    const reader = openReader('{% for message in messages %}{{ message.content + message.content }}{% endfor %}');
    const messages = [{ role: 'user', content: 'owl '.repeat(3000) }];
    expect(await reader.read({ messages, ...limits, maxCharacters: 20_000 })).toEqual({ characters: 24_000 });
  });
});

describe('a thread that reads prompts', () => {
  const quadratic = '{% for a in messages %}{% for b in messages %}{{ a.content }}{% endfor %}{% endfor %}';
  const small: PromptJob = { messages: [{ role: 'user', content: 'owl ' }], ...limits };

  it('is ended when a template takes too long, and the prompts that wait are read by another', async () => {
    const thread = openThread(quadratic);
    const messages = Array.from({ length: 20_000 }, () => ({ role: 'user', content: '' }));
    const reads = Promise.all([
      thread.read({ messages, ...limits }, 50),
      thread.read(small, anHour),
      thread.read({ messages, ...limits }, 50),
      thread.read(small, anHour),
    ]);
    const late: PromptRead = { problem: 'messages: takes longer than 1 s to read' };
    expect(await reads).toEqual([late, { ids: [1] }, late, { ids: [1] }]);
  });

  it('is ended when a template takes too much memory', async () => {
    const thread = openThread(
      '{% set n = namespace(list=[1]) %}{% for a in messages %}{% set n.list = n.list + n.list %}{% endfor %}{{ messages[0].content }}',
    );
    const messages = Array.from({ length: 60 }, () => ({ role: 'user', content: 'owl' }));
    const [huge, after] = await Promise.all([thread.read({ messages, ...limits }, anHour), thread.read(small, anHour)]);
    expect(huge).toEqual({ problem: 'messages: takes too much memory to read' });
    expect(after).toEqual({ ids: [1] });
  });
});
