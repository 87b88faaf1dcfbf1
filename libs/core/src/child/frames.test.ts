import { describe, expect, it } from 'vitest';
import { encodeFrame, FrameReader } from './frames.ts';

const limits = { maxHeaderBytes: 1000, maxBytes: 1000 };

function read(chunks: Iterable<Uint8Array>): unknown[] {
  const reader = new FrameReader(limits);
  return [...chunks].flatMap((chunk) => [...reader.push(Buffer.from(chunk))]);
}

function frame(header: string | object, bytes = ''): Buffer {
  const text = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(text.length);
  return Buffer.concat([length, text, Buffer.from(bytes)]);
}

const messages = [
  { type: 'plain', text: 'é🦊', list: [1, null] },
  { type: 'bytes', rows: [{ data: Buffer.from('ab') }, { data: Buffer.alloc(0) }], other: Buffer.from('cde') },
  { type: 'last' },
];

describe('frames', () => {
  it('keep messages and their bytes, however the stream is cut', () => {
    const stream = Buffer.concat(messages.flatMap((message) => encodeFrame(message)));
    for (const size of [1, 7, stream.length]) {
      const chunks = Array.from({ length: Math.ceil(stream.length / size) }, (_, at) =>
        stream.subarray(at * size, (at + 1) * size),
      );
      expect(read(chunks)).toEqual(messages);
    }
  });

  it('send bytes without a copy', () => {
    const data = new Uint8Array([1, 2, 3]);
    expect(encodeFrame({ data })[2]).toBe(data);
  });

  it('do not take client text for bytes', () => {
    const message = { prompt: { bytes: [[['prompt'], 5]] } };
    expect(read(encodeFrame(message))).toEqual([message]);
  });

  it.each([
    ['no JSON', frame('{'), 'JSON'],
    ['null', frame('null'), 'no list of paths and lengths'],
    ['a negative length', frame({ message: { a: null }, bytes: [[['a'], -1]] }), 'no list of paths and lengths'],
    ['no path', frame({ message: null, bytes: [[[], 1]] }, 'x'), 'no list of paths and lengths'],
    ['a path that does not exist', frame({ message: {}, bytes: [[['a'], 1]] }, 'x'), 'is not null'],
    ['a prototype', frame({ message: {}, bytes: [[['__proto__', 'a'], 1]] }, 'x'), 'is not null'],
    ['bytes in place of text', frame({ message: { a: 'b' }, bytes: [[['a'], 1]] }, 'x'), 'is not null'],
    ['a long header', frame('x'.repeat(1001)), "a frame's header has 1001 bytes, expected at most 1000"],
    [
      'many bytes',
      frame({ message: { a: null }, bytes: [[['a'], 1001]] }),
      "a frame's payload has 1001 bytes, expected at most 1000",
    ],
  ])('throw on %s', (_name, data, message) => {
    expect(() => read([data])).toThrow(message);
  });
});
