/** Reads `.safetensors` files: a length, a JSON header of that length, and the numbers. https://github.com/huggingface/safetensors#format */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { z } from 'zod';
import { readFully } from '../onnx/protobuf-file.ts';

/** A header of a large checkpoint has some hundred kilobytes; what claims to have more is damage, or none of these files. */
const longestHeader = 16 * 2 ** 20;
const lengthBytes = 8;

const bytesOfTypes = { F32: 4, F16: 2, BF16: 2 } as const;
/** Types of numbers that are read. */
export type SafetensorsType = keyof typeof bytesOfTypes;

const tensorSchema = z.object({
  dtype: z.string(),
  shape: z.array(z.number().int().min(0)),
  data_offsets: z.tuple([z.number().int().min(0), z.number().int().min(0)]),
});
const headerSchema = z.record(z.string(), z.unknown());
const metadataSchema = z.record(z.string(), z.string());

/** A tensor of the file, its numbers unread. */
export interface SafetensorsTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  /** In the file. */
  readonly start: number;
  readonly end: number;
}

export interface SafetensorsFile {
  readonly path: string;
  readonly tensors: ReadonlyMap<string, SafetensorsTensor>;
  /** What its maker wrote of it. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** The file is not what it says it is. The message continues "the file …". */
export class SafetensorsError extends Error {}

/**
 * Reads the header, and checks that all numbers it speaks of are there.
 *
 * @throws SafetensorsError if it is none of these files or not whole; Error of node:fs if it cannot be read.
 */
export function readSafetensors(path: string): SafetensorsFile {
  const { header, dataStart, size } = readHeader(path);
  const { __metadata__: metadata, ...entries } = header;
  const tensors = Object.entries(entries).map(([name, entry]) => {
    const parsed = tensorSchema.safeParse(entry);
    if (!parsed.success) throw new SafetensorsError(`has a header that is wrong at ${JSON.stringify(name)}`);
    const { dtype, shape, data_offsets: offsets } = parsed.data;
    const [start, end] = offsets.map((offset) => dataStart + offset) as [number, number];
    if (end > size) throw new SafetensorsError(`is cut short: it has ${size} bytes and needs at least ${end}`);
    const tensor = { dtype, shape, start, end };
    if (isReadable(dtype) && end - start !== countOf(tensor) * bytesOfTypes[dtype])
      throw new SafetensorsError(`has ${end - start} bytes for ${name}, whose shape is [${shape.join(', ')}]`);
    return [name, tensor] as const;
  });
  return { path, tensors: new Map(tensors), metadata: metadataSchema.safeParse(metadata).data ?? {} };
}

/** Whether `readTensors` can read such numbers. */
export function isReadable(dtype: string): dtype is SafetensorsType {
  return Object.hasOwn(bytesOfTypes, dtype);
}

function readHeader(path: string): { header: Record<string, unknown>; dataStart: number; size: number } {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const none = `is no .safetensors file`;
    if (size < lengthBytes) throw new SafetensorsError(`${none}: it has ${size} bytes`);
    const length = new Uint8Array(lengthBytes);
    readFully(file, length, 0);
    const headerLength = Number(Buffer.from(length.buffer).readBigUInt64LE());
    if (headerLength > longestHeader)
      throw new SafetensorsError(`${none}: its header would have ${headerLength} bytes`);
    const dataStart = lengthBytes + headerLength;
    if (dataStart > size) throw new SafetensorsError(`is cut short: it ends in its header`);
    const text = Buffer.alloc(headerLength);
    readFully(file, text, lengthBytes);
    const header = headerSchema.safeParse(parseJson(text.toString('utf8')));
    if (!header.success) throw new SafetensorsError(`${none}: its header is not JSON`);
    return { header: header.data, dataStart, size };
  } finally {
    closeSync(file);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** How many numbers it has. */
export function countOf({ shape }: Pick<SafetensorsTensor, 'shape'>): number {
  return shape.reduce((product, side) => product * side, 1);
}
