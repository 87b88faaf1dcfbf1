import { relative } from 'node:path';
import type { DenoiserFacts } from './denoiser-facts.ts';
import type { LatentFacts } from './latent-facts.ts';
import { modelFileError } from '../model-file.ts';
import { readGraphFile } from '../../onnx/check-onnx-file.ts';

/**
 * What the config.json files of a Stable Diffusion 1.x or 2.x would say, read from its graphs: exports of 2022 have none.
 *
 * From the graphs come the channels (of the first convolution), the width of the text's embedding (of an input) and how
 * often the picture is halved (each halving is undone by one Resize). They do not hold what a latent is scaled by, which is
 * 0.18215 in all published models of this class, nor the size that the model was made for: 64 latents, 512 pixels, as
 * Stable Diffusion 1.x. One that was made for another, such as the 768 pixels of 2.1, says so in its darkroom.json.
 *
 * @throws DarkroomError `model_unsupported` naming the graph that is not of that exporter.
 */
export function readFactsOfGraphs(
  directory: string,
  { denoiser, vaeDecoder }: { denoiser: string; vaeDecoder: string },
): { denoiser: DenoiserFacts; latents: LatentFacts } {
  const unet = openGraph(directory, denoiser);
  const decoder = openGraph(directory, vaeDecoder);
  return {
    denoiser: {
      configFile: unet.file,
      inChannels: channelsOf(unet, 'sample'),
      sampleSize: [64, 64],
      multiple: 2 ** unet.resizes,
      embeddingWidth: widthOf(unet, 'encoder_hidden_states'),
    },
    latents: {
      channels: channelsOf(decoder, 'latent_sample'),
      factor: 2 ** decoder.resizes,
      scalingFactor: 0.18215,
      shiftFactor: 0,
    },
  };
}

type OpenedGraph = ReturnType<typeof openGraph>;

function openGraph(directory: string, path: string) {
  const file = relative(directory, path);
  const graph = readGraphFile(directory, file);
  return { file, graph, resizes: graph.nodes.filter(({ operator }) => operator === 'Resize').length };
}

/** Of the convolution that reads an input: its weights are [outputs, inputs, height, width]. */
function channelsOf({ file, graph }: OpenedGraph, input: string): number {
  const convolution = graph.nodes.find(({ operator, inputs }) => operator === 'Conv' && inputs[0] === input);
  const weights = graph.weights.get(convolution?.inputs[1] ?? '');
  if (weights !== undefined) return weights.shape[1]!;
  throw notOfExporter(file, `a convolution of its input ${input}`);
}

function widthOf({ file, graph }: OpenedGraph, input: string): number {
  const width = graph.inputs.find(({ name }) => name === input)?.shape.at(-1);
  if (typeof width === 'number') return width;
  throw notOfExporter(file, `a fixed width of its input ${input}`);
}

function notOfExporter(file: string, lack: string): Error {
  const unknown = 'so that what its config.json would say is not known';
  return modelFileError(file, `has neither a config.json beside it nor ${lack}, ${unknown}`);
}
