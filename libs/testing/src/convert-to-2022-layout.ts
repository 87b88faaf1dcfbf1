import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { externalizeWeights } from './externalize-weights.ts';
import { field, mapFields, textFieldsOf } from './protobuf-bytes.ts';

/** ONNX enum values: element types, and the attribute type of an integer. */
const elementTypes = { float: 1, int32: 6, int64: 7 } as const;
const intAttribute = 2;

export interface LayOutAsIn2022Options {
  /** Element type of the UNet's timestep input; versions of the exporter differ. */
  timestep: 'float' | 'int64';
}

/**
 * Converts a Stable Diffusion model in today's layout, as tools/golden writes it, to the layout of diffusers' exporter
 * of 2022: no config.json, `weights.pb` beside the UNet, one timestep per row, dynamic dimensions except the text
 * width, int32 token ids, and two outputs of the text encoder.
 */
export function convertTo2022Layout(directory: string, { timestep }: LayOutAsIn2022Options): void {
  const index = join(directory, 'model_index.json');
  const json = JSON.parse(readFileSync(index, 'utf8')) as object;
  writeFileSync(index, JSON.stringify({ ...json, _class_name: 'OnnxStableDiffusionPipeline' }));
  for (const part of ['text_encoder', 'unet', 'vae_decoder']) rmSync(join(directory, part, 'config.json'));

  const latents = ['batch', 'channels', 'height', 'width'];
  changeGraph(join(directory, 'vae_decoder/model.onnx'), {
    inputs: { latent_sample: valueInfo('latent_sample', 'float', latents) },
  });
  changeGraph(join(directory, 'text_encoder/model.onnx'), {
    inputs: { input_ids: valueInfo('input_ids', 'int32', ['batch', 'sequence']) },
    // The rest of the graph expects int64.
    node: (node) => renamed(node, 'input_ids', 'wide_ids'),
    firstNode: castToInt64('input_ids', 'wide_ids'),
    outputs: ['last_hidden_state', 'pooler_output'],
  });
  const unet = join(directory, 'unet/model.onnx');
  changeGraph(unet, {
    inputs: {
      sample: valueInfo('sample', 'float', latents),
      timestep: valueInfo('timestep', timestep, ['batch']),
    },
    node: withoutUnsqueeze,
  });
  externalizeWeights(unet, 'weights.pb');
}

interface GraphChange {
  /** Replacements for the descriptions of these inputs. */
  inputs: Readonly<Record<string, Buffer>>;
  node?: (node: Buffer) => Buffer;
  firstNode?: Buffer;
  /** Outputs to keep. */
  outputs?: readonly string[];
}

function changeGraph(file: string, { inputs, node = (same) => same, firstNode, outputs }: GraphChange): void {
  const change = (number: number, content: Buffer): Buffer | undefined => {
    if (number === 1) return node(content);
    if (number === 11) return inputs[textFieldsOf(content, 1)[0]!] ?? content;
    if (number === 12 && outputs !== undefined && !outputs.includes(textFieldsOf(content, 1)[0]!)) return undefined;
    return content;
  };
  const first = firstNode === undefined ? Buffer.alloc(0) : field(1, firstNode);
  const graphOf = (graph: Buffer): Buffer => Buffer.concat([first, mapFields(graph, change)]);
  writeFileSync(
    file,
    mapFields(readFileSync(file), (number, content) => (number === 7 ? graphOf(content) : content)),
  );
}

/** Replaces the node that expands a scalar timestep: there is one per row already. */
function withoutUnsqueeze(node: Buffer): Buffer {
  const isOfTimestep = textFieldsOf(node, 4)[0] === 'Unsqueeze' && textFieldsOf(node, 1)[0] === 'timestep';
  if (!isOfTimestep) return node;
  const output = field(2, Buffer.from(textFieldsOf(node, 2)[0]!));
  return Buffer.concat([field(1, Buffer.from('timestep')), output, field(4, Buffer.from('Identity'))]);
}

function renamed(node: Buffer, from: string, to: string): Buffer {
  return mapFields(node, (number, content) =>
    number === 1 && content.toString() === from ? Buffer.from(to) : content,
  );
}

function castToInt64(input: string, output: string): Buffer {
  const to = [field(1, Buffer.from('to')), Buffer.from([3 * 8, elementTypes.int64, 160, 1, intAttribute])];
  const [inputs, outputs] = [field(1, Buffer.from(input)), field(2, Buffer.from(output))];
  return Buffer.concat([inputs, outputs, field(4, Buffer.from('Cast')), field(5, Buffer.concat(to))]);
}

/** Builds a ValueInfoProto with named dynamic dimensions (TypeProto, tensor type, TensorShapeProto, Dimension). */
function valueInfo(name: string, type: keyof typeof elementTypes, dimensions: readonly string[]): Buffer {
  const shape = Buffer.concat(dimensions.map((dimension) => field(1, field(2, Buffer.from(dimension)))));
  const tensorType = Buffer.concat([Buffer.from([8, elementTypes[type]]), field(2, shape)]);
  return Buffer.concat([field(1, Buffer.from(name)), field(2, field(1, tensorType))]);
}
