import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { externalizeWeights } from './externalize-weights.ts';
import { field, mapFields, textsOf } from './protobuf-bytes.ts';

/** ONNX's numbers: of types of elements, and of attributes that are a whole number. */
const elementTypes = { float: 1, int32: 6, int64: 7 } as const;
const intAttribute = 2;

export interface LayOutAsIn2022Options {
  /** What the UNet takes timesteps as: the exporter's versions differ. */
  timestep: 'float' | 'int64';
}

/**
 * Turns a Stable Diffusion of today's layout, as tools/golden writes it, into what diffusers' exporter of 2022 wrote of the same
 * weights: no config.json, `weights.pb` beside the UNet, a timestep for each row, all dimensions open but the width of the
 * text, token ids of 32 bits, two outputs of the text encoder.
 */
export function layOutAsIn2022(directory: string, { timestep }: LayOutAsIn2022Options): void {
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
    // The rest of the graph goes on with what it was traced with.
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
  /** Descriptions that take the place of those of these inputs. */
  inputs: Readonly<Record<string, Buffer>>;
  node?: (node: Buffer) => Buffer;
  firstNode?: Buffer;
  /** Those that are kept. */
  outputs?: readonly string[];
}

function changeGraph(file: string, { inputs, node = (same) => same, firstNode, outputs }: GraphChange): void {
  const change = (number: number, content: Buffer): Buffer | undefined => {
    if (number === 1) return node(content);
    if (number === 11) return inputs[textsOf(content, 1)[0]!] ?? content;
    if (number === 12 && outputs !== undefined && !outputs.includes(textsOf(content, 1)[0]!)) return undefined;
    return content;
  };
  const first = firstNode === undefined ? Buffer.alloc(0) : field(1, firstNode);
  const graphOf = (graph: Buffer): Buffer => Buffer.concat([first, mapFields(graph, change)]);
  writeFileSync(
    file,
    mapFields(readFileSync(file), (number, content) => (number === 7 ? graphOf(content) : content)),
  );
}

/** A timestep that was a single number is spread over the rows. One for each row is there already. */
function withoutUnsqueeze(node: Buffer): Buffer {
  const isOfTimestep = textsOf(node, 4)[0] === 'Unsqueeze' && textsOf(node, 1)[0] === 'timestep';
  if (!isOfTimestep) return node;
  const output = field(2, Buffer.from(textsOf(node, 2)[0]!));
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

/** ValueInfoProto → TypeProto → its tensor type → TensorShapeProto → Dimension, each an open one with a name. */
function valueInfo(name: string, type: keyof typeof elementTypes, dimensions: readonly string[]): Buffer {
  const shape = Buffer.concat(dimensions.map((dimension) => field(1, field(2, Buffer.from(dimension)))));
  const tensorType = Buffer.concat([Buffer.from([8, elementTypes[type]]), field(2, shape)]);
  return Buffer.concat([field(1, Buffer.from(name)), field(2, field(1, tensorType))]);
}
