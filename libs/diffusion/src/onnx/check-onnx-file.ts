import { statSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { modelFileError } from '@darkroom/runtime/model-file';
import { ProtobufError } from './protobuf-file.ts';
import { type ExternalData, type OnnxFile, type OnnxTensor, readOnnxFile } from './read-onnx-file.ts';

/** ONNX's element type numbers, by bits per element. Strings have no fixed size. */
const typesOfBits: readonly [bits: number, types: readonly number[]][] = [
  [4, [21, 22, 23]],
  [8, [2, 3, 9, 17, 18, 19, 20]],
  [16, [4, 5, 10, 16]],
  [32, [1, 6, 12]],
  [64, [7, 11, 13, 14]],
  [128, [15]],
];

/** A complete `.onnx` file, with the files that hold its weights. */
export interface CompleteOnnxFile extends OnnxFile {
  /** Relative to the model's directory, in no particular order. */
  readonly externalFiles: readonly string[];
}

/**
 * Checks that a graph's file and its external data files are complete, without reading the weights.
 *
 * @param file relative to the model's directory.
 * @throws DarkroomError `model_unsupported` naming the file and the problem.
 */
export function checkOnnxFile(directory: string, file: string): CompleteOnnxFile {
  const graph = readGraphFile(directory, file);
  const sizes = new Map<string, number>();
  for (const tensor of graph.tensors) {
    if (tensor.external !== undefined) checkExternal(tensor, tensor.external);
    else if (tensor.rawBytes !== undefined) checkLength(tensor, tensor.rawBytes, file);
  }
  return { ...graph, externalFiles: [...sizes.keys()] };

  function checkExternal(tensor: OnnxTensor, { location, offset, length }: ExternalData): void {
    const name = externalFile(file, location);
    const size = sizes.get(name) ?? sizeOf(directory, name, file);
    sizes.set(name, size);
    const bytes = length ?? size - offset;
    if (offset + bytes > size || bytes < 0) {
      throw modelFileError(name, `is cut short: it has ${size} bytes and ${file} needs ${offset + Math.max(bytes, 0)}`);
    }
    checkLength(tensor, bytes, name);
  }
}

/**
 * Returns the file of a tensor's external data, relative to the model's directory.
 *
 * @param file the graph's file, relative to the model's directory.
 * @throws DarkroomError `model_unsupported` if the data is not in the graph's folder.
 */
export function externalFile(file: string, location: string): string {
  const isInside = location !== '' && !/[\\:\0]/u.test(location) && !posix.isAbsolute(location);
  const name = posix.join(dirname(file), location);
  if (isInside && name.startsWith(`${dirname(file)}/`)) return name;
  throw modelFileError(file, `has its external data in ${JSON.stringify(location)}, which is outside its folder`);
}

/**
 * Reads a graph's file without checking the files of its weights.
 *
 * @param file relative to the model's directory.
 * @throws DarkroomError `model_unsupported` naming the file and the problem.
 */
export function readGraphFile(directory: string, file: string): OnnxFile {
  try {
    return readOnnxFile(join(directory, file));
  } catch (error) {
    if (error instanceof ProtobufError) throw modelFileError(file, `is not a whole ONNX file: ${error.message}`, error);
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw modelFileError(file, isMissing ? 'is missing' : 'could not be read', error);
  }
}

function sizeOf(directory: string, name: string, file: string): number {
  const stat = statSync(join(directory, name), { throwIfNoEntry: false });
  if (stat !== undefined) return stat.size;
  throw modelFileError(name, `is missing; it has the weights of ${file}`);
}

function checkLength({ name, shape, count, dataType }: OnnxTensor, bytes: number, file: string): void {
  const [bits] = typesOfBits.find(([, types]) => types.includes(dataType)) ?? [];
  if (bits === undefined) return;
  const needed = Math.ceil((count * bits) / 8);
  if (needed === bytes) return;
  throw modelFileError(
    file,
    `has ${bytes} bytes for the tensor ${JSON.stringify(name)}, whose shape [${shape.join(', ')}] needs ${needed}`,
  );
}
