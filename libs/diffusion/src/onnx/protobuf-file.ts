/**
 * Reads protobuf messages from a file field by field, skipping fields that are not read: of a graph of two gigabytes,
 * almost all weights, it reads a few megabytes.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** The bytes are not a valid message: truncated, or not protobuf. */
export class ProtobufError extends Error {}

export interface ByteSpan {
  readonly start: number;
  readonly end: number;
}

/** One field of a message. The range contains a string, nested message or bytes; it is empty for a number. */
interface ProtobufField extends ByteSpan {
  /** The number. Negative numbers appear as their two's complement; no caller needs them. */
  readonly value: number;
}

const windowBytes = 65_536;
/** Names and shapes are short; a longer length means a damaged file. */
const maxTextBytes = 1_048_576;

/**
 * Fills a buffer from an offset of an open file. Fails on a short read: missing bytes would become weights of zero, and
 * a wrong image.
 *
 * @throws ProtobufError if the file ends first.
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

  /** Parses the message in a range, by default the complete file. @throws ProtobufError if it is not a message. */
  message({ start, end }: ByteSpan = { start: 0, end: this.size }): ProtobufMessage {
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

  text({ start, end }: ByteSpan): string {
    if (end - start > maxTextBytes) throw new ProtobufError(`the text at byte ${start} is too long`);
    return this.bytes({ start, end }).toString('utf8');
  }

  bytes({ start, end }: ByteSpan): Buffer {
    const from = start - this.#windowStart;
    if (from >= 0 && end <= this.#windowStart + this.#window.length) {
      return this.#window.subarray(from, end - this.#windowStart);
    }
    const buffer = Buffer.alloc(end - start);
    this.read(buffer, start);
    return buffer;
  }

  /** Fills a buffer from an offset. @throws ProtobufError if the file ends first. */
  read(buffer: Uint8Array, start: number): void {
    readFully(this.#file, buffer, start);
  }

  /** Parses the varints in a range, such as those of a packed field. */
  varints({ start, end }: ByteSpan): number[] {
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

  /** Returns the range of a field's content, by protobuf's wire types. */
  #fieldAt(wireType: number, at: number, end: number): ProtobufField {
    const { value, next } = wireType === 0 || wireType === 2 ? this.#varintAt(at, end) : { value: 0, next: at };
    if (wireType === 0) return { value, start: next, end: next };
    const lengths: Readonly<Record<number, number>> = { 1: 8, 2: value, 5: 4 };
    const length = lengths[wireType];
    if (length === undefined) throw new ProtobufError(`byte ${at} is not the start of a field`);
    if (next + length > this.size) {
      throw new ProtobufError(`it is cut short: it has ${this.size} bytes and needs at least ${next + length}`);
    }
    if (next + length > end) throw new ProtobufError(`a field at byte ${at} extends beyond its message`);
    return { value: 0, start: next, end: next + length };
  }
}

/** The fields of a message, by number. If a singular field is repeated, the last one counts. */
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

  /** Returns 0 if absent. */
  number(number: number): number {
    return this.all(number).at(-1)?.value ?? 0;
  }

  /** Reads a repeated number, packed or not. */
  numbers(number: number): number[] {
    return this.all(number).flatMap((field) => (field.end > field.start ? this.#file.varints(field) : [field.value]));
  }

  /** Returns '' if absent. */
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
