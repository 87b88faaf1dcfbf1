/**
 * Reads `.safetensors` files: a length, a JSON header of that length, and the values.
 * https://github.com/huggingface/safetensors#format
 */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { z } from 'zod';
import { readFully } from '../onnx/protobuf-file.ts';

/**
 * Maximum header size. Headers of large checkpoints have some hundred kilobytes; a larger one means a damaged or other
 * file.
 */
const maxHeaderBytes = 16 * 2 ** 20;
const lengthBytes = 8;

const bytesOfTypes = { F32: 4, F16: 2, BF16: 2 } as const;
/** Supported types of values. */
export type SafetensorsType = keyof typeof bytesOfTypes;

const tensorSchema = z.object({
  dtype: z.string(),
  shape: z.array(z.number().int().min(0)),
  data_offsets: z.tuple([z.number().int().min(0), z.number().int().min(0)]),
});
const headerSchema = z.record(z.string(), z.unknown());
const metadataSchema = z.record(z.string(), z.string());

/** A tensor of the file; its values are read later. */
export interface SafetensorsTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Byte offset in the file. */
  readonly start: number;
  readonly end: number;
}

export interface SafetensorsFile {
  readonly path: string;
  readonly tensors: ReadonlyMap<string, SafetensorsTensor>;
  /** Free-form metadata of the file's author. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** The file is damaged or not a `.safetensors` file. The message continues the sentence "the file …". */
export class SafetensorsError extends Error {}

/**
 * Reads the header and checks that the file contains all tensor data.
 *
 * @throws SafetensorsError if the file is of another type or not complete; an Error of node:fs if it cannot be read.
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
    if (isReadable(dtype) && end - start !== valueCountOf(tensor) * bytesOfTypes[dtype])
      throw new SafetensorsError(`has ${end - start} bytes for ${name}, whose shape is [${shape.join(', ')}]`);
    return [name, tensor] as const;
  });
  return { path, tensors: new Map(tensors), metadata: metadataSchema.safeParse(metadata).data ?? {} };
}

/** Returns true if `readTensors` can read values of this type. */
export function isReadable(dtype: string): dtype is SafetensorsType {
  return Object.hasOwn(bytesOfTypes, dtype);
}

function readHeader(path: string): { header: Record<string, unknown>; dataStart: number; size: number } {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const notSafetensors = `is no .safetensors file`;
    if (size < lengthBytes) throw new SafetensorsError(`${notSafetensors}: it has ${size} bytes`);
    const length = new Uint8Array(lengthBytes);
    readFully(file, length, 0);
    const headerLength = Number(Buffer.from(length.buffer).readBigUInt64LE());
    if (headerLength > maxHeaderBytes)
      throw new SafetensorsError(
        `${notSafetensors}: its header claims ${headerLength} bytes, expected at most ${maxHeaderBytes}`,
      );
    const dataStart = lengthBytes + headerLength;
    if (dataStart > size) throw new SafetensorsError(`is cut short: it ends in its header`);
    const text = Buffer.alloc(headerLength);
    readFully(file, text, lengthBytes);
    const header = headerSchema.safeParse(parseJson(text.toString('utf8')));
    if (!header.success) throw new SafetensorsError(`${notSafetensors}: its header is not JSON`);
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

/** Returns the number of values. */
export function valueCountOf({ shape }: Pick<SafetensorsTensor, 'shape'>): number {
  return shape.reduce((product, side) => product * side, 1);
}
