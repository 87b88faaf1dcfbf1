import { itemAt } from '@darkroom/core';
import { relative } from 'node:path';
import type { DenoiserConfig } from './denoiser-config.ts';
import type { LatentConfig } from './latent-config.ts';
import { modelFileError } from '@darkroom/runtime/model-file';
import { readGraphFile } from '../../onnx/check-onnx-file.ts';

/**
 * Derives the configuration of a Stable Diffusion 1.x or 2.x from its graphs: exports of 2022 have no config.json. The
 * graphs contain channels (first convolution), text width (an input) and VAE factor (number of Resize nodes), but not
 * the scaling factor (0.18215 in all published models) and the trained size (64 latents assumed).
 *
 * @throws DarkroomError `model_unsupported` naming a graph from another exporter.
 */
export function readGraphConfig(
  directory: string,
  { denoiser, vaeDecoder }: { denoiser: string; vaeDecoder: string },
): { denoiser: DenoiserConfig; latents: LatentConfig } {
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

/**
 * Returns the input channels of the convolution that reads an input: its weights are [outputs, inputs, height, width].
 */
function channelsOf({ file, graph }: OpenedGraph, input: string): number {
  const convolution = graph.nodes.find(({ operator, inputs }) => operator === 'Conv' && inputs[0] === input);
  const weights = graph.weights.get(convolution?.inputs[1] ?? '');
  if (weights !== undefined) return itemAt(weights.shape, 1);
  throw notOfExporter(file, `a convolution of its input ${input}`);
}

function widthOf({ file, graph }: OpenedGraph, input: string): number {
  const width = graph.inputs.find(({ name }) => name === input)?.shape.at(-1);
  if (typeof width === 'number') return width;
  throw notOfExporter(file, `a fixed width of its input ${input}`);
}

function notOfExporter(file: string, lack: string): Error {
  const unknown = 'so its configuration cannot be determined';
  return modelFileError(file, `has neither a config.json beside it nor ${lack}, ${unknown}`);
}
