import type { PictureRequest } from '../picture-request.ts';
import { textsOf } from './file-texts.ts';
import { parseParameters } from './parse-parameters.ts';

/** What fields of a request may be, of one that somebody else's file has. */
const fields = {
  model: isText,
  prompt: isText,
  negative_prompt: isText,
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
 * What made a picture, as far as its file says it: a body for `submit`, with which the server it is from makes the same picture again.
 * Reads what Darkroom writes with `metadata: true`, and the parameters that Stable Diffusion web UI and others write, in PNG, JPEG and
 * WebP files. Works in browsers.
 *
 * @returns undefined where the file says nothing, is none of these, or is broken.
 */
export function readMetadata(file: Uint8Array): Partial<PictureRequest> | undefined {
  const { darkroom, parameters } = textsOf(file);
  return (darkroom && parseRequest(darkroom)) || (parameters && parseParameters(parameters)) || undefined;
}

function parseRequest(json: string): Partial<PictureRequest> | undefined {
  let said: unknown;
  try {
    said = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (typeof said !== 'object' || said === null) return undefined;
  const known = Object.entries(said).filter(
    ([name, value]) => Object.hasOwn(fields, name) && fields[name as keyof typeof fields](value),
  );
  return known.length === 0 ? undefined : (Object.fromEntries(known) as Partial<PictureRequest>);
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
