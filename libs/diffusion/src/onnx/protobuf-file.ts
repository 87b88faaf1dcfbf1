/**
 * Reads protobuf messages straight from a file, field by field, without the fields nobody asks for: of a graph of two
 * gigabytes, almost all of which are weights, a few megabytes are read.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** A message is not what it says it is: cut short, or no protobuf at all. */
export class ProtobufError extends Error {}

export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** One field of a message. A text, a nested message or bytes lie in its range, which is empty for a number. */
interface ProtobufField extends ByteRange {
  /** Of a number. Negative numbers come as their two's complement and are of no use here. */
  readonly value: number;
}

const windowBytes = 65_536;
/** Names and shapes are short; what claims to be longer is damage. */
const longestText = 1_048_576;

/**
 * Fills a buffer with the bytes of an open file from a place on: what is missing would be zeros, and weights of zeros a
 * wrong picture.
 *
 * @throws ProtobufError if there are not so many.
 */
export function readFully(file: number, buffer: Uint8Array, start: number): void {
  for (let at = 0; at < buffer.length;) {
    const bytes = readSync(file, buffer, at, buffer.length - at, start + at);
    if (bytes === 0) throw new ProtobufError(`it is cut short: it ends at byte ${start + at}`);
    at += bytes;
  }
}

export class ProtobufFile {
  readonly size: number;
  readonly #file: number;
  #window: Buffer = Buffer.alloc(0);
  #windowStart = 0;

  /** @throws Error of node:fs if it cannot be opened. */
  constructor(path: string) {
    this.#file = openSync(path, 'r');
    this.size = fstatSync(this.#file).size;
  }

  /** The message that lies there, the whole file by default. @throws ProtobufError where it is none. */
  message({ start, end }: ByteRange = { start: 0, end: this.size }): ProtobufMessage {
    const fields = new Map<number, ProtobufField[]>();
    for (let at = start; at < end;) {
      const { value: key, next } = this.#varintAt(at, end);
      const field = this.#fieldAt(key % 8, next, end);
      const number = Math.floor(key / 8);
      const others = fields.get(number);
      if (others === undefined) fields.set(number, [field]);
      else others.push(field);
      at = field.end;
    }
    return new ProtobufMessage(this, fields);
  }

  text({ start, end }: ByteRange): string {
    if (end - start > longestText) throw new ProtobufError(`the text at byte ${start} is too long`);
    return this.bytes({ start, end }).toString('utf8');
  }

  bytes({ start, end }: ByteRange): Buffer {
    const from = start - this.#windowStart;
    if (from >= 0 && end <= this.#windowStart + this.#window.length) {
      return this.#window.subarray(from, end - this.#windowStart);
    }
    const buffer = Buffer.alloc(end - start);
    this.read(buffer, start);
    return buffer;
  }

  /** Fills a buffer with the bytes from a place on. @throws ProtobufError if there are not so many. */
  read(buffer: Uint8Array, start: number): void {
    readFully(this.#file, buffer, start);
  }

  /** The varints between two places, as a packed field has them. */
  varints({ start, end }: ByteRange): number[] {
    const values: number[] = [];
    for (let at = start; at < end;) {
      const { value, next } = this.#varintAt(at, end);
      values.push(value);
      at = next;
    }
    return values;
  }

  close(): void {
    closeSync(this.#file);
  }

  #byteAt(at: number): number {
    if (at < this.#windowStart || at >= this.#windowStart + this.#window.length) {
      const buffer = Buffer.alloc(Math.min(windowBytes, this.size - at));
      this.#window = buffer.subarray(0, readSync(this.#file, buffer, 0, buffer.length, at));
      this.#windowStart = at;
    }
    const byte = this.#window[at - this.#windowStart];
    if (byte === undefined) throw new ProtobufError(`it ends at byte ${at}, in the middle of a field`);
    return byte;
  }

  #varintAt(at: number, end: number): { value: number; next: number } {
    let value = 0;
    let factor = 1;
    for (let next = at; next < end && next < at + 10; factor *= 128) {
      const byte = this.#byteAt(next++);
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return { value, next };
    }
    throw new ProtobufError(`a number at byte ${at} has no end`);
  }

  /** Where a field's content lies, by protobuf's wire types. */
  #fieldAt(wireType: number, at: number, end: number): ProtobufField {
    const { value, next } = wireType === 0 || wireType === 2 ? this.#varintAt(at, end) : { value: 0, next: at };
    if (wireType === 0) return { value, start: next, end: next };
    const lengths: Readonly<Record<number, number>> = { 1: 8, 2: value, 5: 4 };
    const length = lengths[wireType];
    if (length === undefined) throw new ProtobufError(`byte ${at} is not the start of a field`);
    if (next + length > this.size) {
      throw new ProtobufError(`it is cut short: it has ${this.size} bytes and needs at least ${next + length}`);
    }
    if (next + length > end) throw new ProtobufError(`a field at byte ${at} is longer than what it is in`);
    return { value: 0, start: next, end: next + length };
  }
}

/** The fields of a message, by their numbers. Of one that comes several times and is asked for once, the last counts. */
export class ProtobufMessage {
  readonly #file: ProtobufFile;
  readonly #fields: ReadonlyMap<number, readonly ProtobufField[]>;

  constructor(file: ProtobufFile, fields: ReadonlyMap<number, readonly ProtobufField[]>) {
    this.#file = file;
    this.#fields = fields;
  }

  all(number: number): readonly ProtobufField[] {
    return this.#fields.get(number) ?? [];
  }

  /** 0 if absent. */
  number(number: number): number {
    return this.all(number).at(-1)?.value ?? 0;
  }

  /** Repeated numbers, which may come packed or one by one. */
  numbers(number: number): number[] {
    return this.all(number).flatMap((field) => (field.end > field.start ? this.#file.varints(field) : [field.value]));
  }

  /** '' if absent. */
  text(number: number): string {
    return this.texts(number).at(-1) ?? '';
  }

  texts(number: number): string[] {
    return this.all(number).map((field) => this.#file.text(field));
  }

  messages(number: number): ProtobufMessage[] {
    return this.all(number).map((field) => this.#file.message(field));
  }
}
