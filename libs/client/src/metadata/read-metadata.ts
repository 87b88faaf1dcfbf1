import type { ImageRequest } from '../requests.ts';
import { textsOf } from './file-texts.ts';
import { parseParameters } from './parse-parameters.ts';

/** Validators of the request fields in a file, which may come from any program. */
const fields = {
  model: isText,
  prompt: isText,
  negative_prompt: isText,
  prompt_syntax: isText,
  size: (value: unknown) => isText(value) && /^\d{1,5}x\d{1,5}$/.test(value),
  num_inference_steps: isNumber,
  guidance_scale: isNumber,
  guidance_rescale: isNumber,
  seed: isNumber,
  scheduler: isText,
  strength: isNumber,
  upscale: isNumber,
  loras: (value: unknown) => Array.isArray(value) && value.every((each) => isLora(each)),
} as const;

/**
 * Reads an image's recipe from its file: a body for `submit`, with which the same server makes the same image. Reads
 * Darkroom's metadata (`metadata: true`) and the parameters of Stable Diffusion web UI and others, in PNG, JPEG and
 * WebP files. Works in browsers.
 *
 * @returns undefined if the file has no such metadata, has another type or is broken.
 *
 * @example
 *   const recipe = readMetadata(new Uint8Array(await file.arrayBuffer()));
 *   if (recipe !== undefined) await client.submit({ prompt: 'a red apple', ...recipe });
 */
export function readMetadata(file: Uint8Array): Partial<ImageRequest> | undefined {
  const { darkroom, parameters } = textsOf(file);
  return (darkroom && parseRequest(darkroom)) || (parameters && parseParameters(parameters)) || undefined;
}

function parseRequest(json: string): Partial<ImageRequest> | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (typeof parsed !== 'object' || parsed === null) return undefined;
  const known = Object.entries(parsed).filter(
    ([name, value]) => Object.hasOwn(fields, name) && fields[name as keyof typeof fields](value),
  );
  return known.length === 0 ? undefined : (Object.fromEntries(known) as Partial<ImageRequest>);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}

function isLora(value: unknown): boolean {
  const { id, scale } = (value ?? {}) as { id?: unknown; scale?: unknown };
  return isText(id) && isNumber(scale);
}
