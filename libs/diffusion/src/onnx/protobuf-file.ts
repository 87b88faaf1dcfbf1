/**
 * Reads protobuf messages straight from a file, field by field, without the fields nobody asks for: of a graph of two
 * gigabytes, almost all of which are weights, a few megabytes are read.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** A message is not what it says it is: cut short, or no protobuf at all. */
export class ProtobufError extends Error {}

/** One field of a message. */
export interface ProtobufField {
  readonly number: number;
  /** Of a number. Negative numbers come as their two's complement and are of no use here. */
  readonly value: number;
  /** Of a text, a nested message or bytes: where they lie in the file; equal for a number. */
  readonly start: number;
  readonly end: number;
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

/** An open file of protobuf. */
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

  /** The fields of the message that lies there. @throws ProtobufError where it is none. */
  *fields(start: number, end: number): Generator<ProtobufField> {
    for (let at = start; at < end;) {
      const { value: key, next } = this.#varintAt(at, end);
      const content = this.#contentAt(key % 8, next, end);
      yield { number: Math.floor(key / 8), ...content };
      at = content.end;
    }
  }

  /** The text between two places. */
  text(start: number, end: number): string {
    if (end - start > longestText) throw new ProtobufError(`the text at byte ${start} is too long`);
    return this.bytes(start, end).toString('utf8');
  }

  /** The bytes between two places. */
  bytes(start: number, end: number): Buffer {
    const buffer = Buffer.alloc(end - start);
    this.read(buffer, start);
    return buffer;
  }

  /** Fills a buffer with the bytes from a place on. @throws ProtobufError if there are not so many. */
  read(buffer: Uint8Array, start: number): void {
    readFully(this.#file, buffer, start);
  }

  /** The varints between two places, as a packed field has them. */
  varints(start: number, end: number): number[] {
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
  #contentAt(wireType: number, at: number, end: number): Omit<ProtobufField, 'number'> {
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
