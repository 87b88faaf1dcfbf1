/** Tiny graphs for post-processing of decoded images, with the input and output names of common exports. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bytesField, numberField } from '@darkroom/runtime/protobuf';

/** ONNX enum values: element types and attribute types. */
const [float32, int64, bool] = [1, 7, 9];
const [oneInt, oneText, manyInts] = [2, 3, 7];

/**
 * Writes a safety checker into a model's directory that flags images with much more red than blue.
 *
 * @param redder threshold of the mean difference in CLIP's normalized values; 0.5 is about 13 % of the full range.
 */
export function writeSafetyChecker(directory: string, redder = 0.5): void {
  writeModel(join(directory, 'safety_checker'), {
    nodes: [
      node('ReduceMean', ['clip_input'], ['colors'], [ints('axes', [2, 3]), int('keepdims', 0)]),
      node('Gather', ['colors', 'red'], ['of_red'], [int('axis', 1)]),
      node('Gather', ['colors', 'blue'], ['of_blue'], [int('axis', 1)]),
      node('Sub', ['of_red', 'of_blue'], ['redder']),
      node('Greater', ['redder', 'limit'], ['has_nsfw_concepts']),
      node('Identity', ['images'], ['out_images']),
    ],
    weights: [
      scalar('red', int64, BigInt64Array.of(0n)),
      scalar('blue', int64, BigInt64Array.of(2n)),
      scalar('limit', float32, Float32Array.of(redder)),
    ],
    inputs: [end('clip_input', float32), end('images', float32)],
    outputs: [end('out_images', float32), end('has_nsfw_concepts', bool)],
  });
  mkdirSync(join(directory, 'feature_extractor'), { recursive: true });
  const settings = {
    crop_size: 224,
    image_mean: [0.48145466, 0.4578275, 0.40821073],
    image_std: [0.26862954, 0.26130258, 0.27577711],
    size: 224,
  };
  writeFileSync(join(directory, 'feature_extractor/preprocessor_config.json'), JSON.stringify(settings));
}

/** Writes an upscaler with ESRGAN's input and output names that repeats each pixel `scale` times in both directions. */
export function writeUpscaler(directory: string, upscale: number, scale = upscale): void {
  writeModel(join(directory, `upscaler_x${upscale}`), {
    nodes: [
      node(
        'Resize',
        ['input', '', 'scales'],
        ['output'],
        [text('mode', 'nearest'), text('nearest_mode', 'floor'), text('coordinate_transformation_mode', 'asymmetric')],
      ),
    ],
    weights: [vector('scales', Float32Array.of(1, 1, scale, scale))],
    inputs: [end('input', float32)],
    outputs: [end('output', float32)],
  });
}

interface Graph {
  nodes: readonly Buffer[];
  weights: readonly Buffer[];
  inputs: readonly Buffer[];
  outputs: readonly Buffer[];
}

function writeModel(folder: string, { nodes, weights, inputs, outputs }: Graph): void {
  const graph = Buffer.concat([
    ...nodes.map((content) => bytesField(1, content)),
    bytesField(2, 'tiny'),
    ...weights.map((content) => bytesField(5, content)),
    ...inputs.map((content) => bytesField(11, content)),
    ...outputs.map((content) => bytesField(12, content)),
  ]);
  const operators = Buffer.concat([bytesField(1, ''), numberField(2, 17)]);
  mkdirSync(folder, { recursive: true });
  const model = Buffer.concat([numberField(1, 8), bytesField(7, graph), bytesField(8, operators)]);
  writeFileSync(join(folder, 'model.onnx'), model);
}

function node(
  operator: string,
  inputs: readonly string[],
  outputs: readonly string[],
  attributes: readonly Buffer[] = [],
): Buffer {
  return Buffer.concat([
    ...inputs.map((input) => bytesField(1, input)),
    ...outputs.map((output) => bytesField(2, output)),
    bytesField(4, operator),
    ...attributes.map((attribute) => bytesField(5, attribute)),
  ]);
}

function int(name: string, value: number): Buffer {
  return Buffer.concat([bytesField(1, name), numberField(3, value), numberField(20, oneInt)]);
}

function text(name: string, value: string): Buffer {
  return Buffer.concat([bytesField(1, name), bytesField(4, value), numberField(20, oneText)]);
}

function ints(name: string, values: readonly number[]): Buffer {
  return Buffer.concat([
    bytesField(1, name),
    ...values.map((value) => numberField(8, value)),
    numberField(20, manyInts),
  ]);
}

function scalar(name: string, type: number, values: ArrayBufferView): Buffer {
  return weight(name, [], type, values);
}

function vector(name: string, values: Float32Array): Buffer {
  return weight(name, [values.length], float32, values);
}

function weight(name: string, dims: readonly number[], type: number, values: ArrayBufferView): Buffer {
  const raw = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  const sides = dims.map((side) => numberField(1, side));
  return Buffer.concat([...sides, numberField(2, type), bytesField(8, name), bytesField(9, raw)]);
}

/** Describes a tensor of any shape. */
function end(name: string, type: number): Buffer {
  return Buffer.concat([bytesField(1, name), bytesField(2, bytesField(1, numberField(1, type)))]);
}
