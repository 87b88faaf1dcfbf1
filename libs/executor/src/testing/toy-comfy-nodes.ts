/** Nodes of the fake ComfyUI, with the inputs that the real ones have, and the validation of workflows by them. */

export type ToyGraph = Record<string, { class_type: string; inputs: Record<string, unknown> }>;

export const toyNodeTypes = { sampler: 'KSampler', save: 'SaveImage' };

/** Types of a node's inputs: a link to another node's output, or a value with its limits. */
type ToyInput = 'link' | 'text' | 'file' | { min: number; max: number };
const nodes: Record<string, Record<string, ToyInput>> = {
  CheckpointLoaderSimple: { ckpt_name: 'text' },
  CLIPTextEncode: { text: 'text', clip: 'link' },
  EmptyLatentImage: {
    width: { min: 16, max: 16_384 },
    height: { min: 16, max: 16_384 },
    batch_size: { min: 1, max: 4096 },
  },
  KSampler: {
    model: 'link',
    positive: 'link',
    negative: 'link',
    latent_image: 'link',
    seed: { min: 0, max: 2 ** 64 },
    steps: { min: 1, max: 10_000 },
    cfg: { min: 0, max: 100 },
    sampler_name: 'text',
    scheduler: 'text',
    denoise: { min: 0, max: 1 },
  },
  LoadImage: { image: 'file' },
  LoadImageMask: { image: 'file', channel: 'text' },
  PreviewImage: { images: 'link' },
  SaveImage: { images: 'link', filename_prefix: 'text' },
  SetLatentNoiseMask: { samples: 'link', mask: 'link' },
  VAEDecode: { samples: 'link', vae: 'link' },
  VAEEncode: { pixels: 'link', vae: 'link' },
};

export function toyNodeInfo(type: string): object {
  return nodes[type] === undefined ? {} : { [type]: { input: { required: nodes[type] }, name: type } };
}

/** Returns errors by node, as ComfyUI lists them; an empty object for a valid workflow. */
export function validateToyGraph(graph: ToyGraph, files: readonly { name: string; type: string }[]) {
  const errors: Record<string, { errors: object[]; class_type: string }> = {};
  for (const [id, { class_type, inputs }] of Object.entries(graph)) {
    const expected = nodes[class_type] ?? {};
    const names = new Set([...Object.keys(expected), ...Object.keys(inputs)]);
    const wrong = [...names].flatMap((name) => {
      const problem = problemOf(inputs[name], expected[name], { graph, files });
      return problem === undefined ? [] : [{ ...problem, extra_info: { input_name: name } }];
    });
    if (wrong.length > 0) errors[id] = { errors: wrong, class_type };
  }
  return errors;
}

function problemOf(
  value: unknown,
  input: ToyInput | undefined,
  { graph, files }: { graph: ToyGraph; files: readonly { name: string; type: string }[] },
): object | undefined {
  if (input === undefined) return invalid('Unknown input', '');
  if (input === 'link') {
    const isLink = Array.isArray(value) && graph[String(value[0])] !== undefined;
    return isLink ? undefined : invalid('Bad linked input', JSON.stringify(value));
  }
  if (input === 'text') return typeof value === 'string' ? undefined : invalid('Bad type', typeof value);
  if (input === 'file') {
    const isThere = files.some(({ name, type }) => value === `${name} [${type}]`);
    return isThere ? undefined : invalid('Custom validation failed for node', `Invalid image file: ${String(value)}`);
  }
  if (typeof value !== 'number') return invalid('Failed to convert an input value', typeof value);
  if (value > input.max) return invalid(`Value ${value} bigger than max of ${input.max}`, '');
  return value < input.min ? invalid(`Value ${value} smaller than min of ${input.min}`, '') : undefined;
}

function invalid(message: string, details: string): object {
  return { type: 'invalid', message, details };
}
