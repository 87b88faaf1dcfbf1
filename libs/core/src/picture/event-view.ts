/** Parts of an event as they are told to clients, in streams, polls and webhooks alike. */
import type { OutputInfo, OutputProgress } from '../request/request-event.ts';

/** A picture of a request, as clients see it. */
export interface ImageView {
  index: number;
  /** A path, see `imageUrl`. */
  url: string;
  seed: number;
  width: number;
  height: number;
  content_type: string;
  bytes: number;
}

/** A path: only the client knows under which name it reaches the API. */
export function imageUrl(id: string, index: number): string {
  return `/v1/predict/${id}/images/${index}`;
}

export function imageView(id: string, output: OutputInfo): ImageView {
  return {
    index: output.index,
    url: imageUrl(id, output.index),
    seed: Number(output['seed']),
    width: Number(output['width']),
    height: Number(output['height']),
    content_type: output.contentType,
    bytes: output.bytes,
  };
}

export interface PromptCutView {
  prompt_tokens_cut: number | null;
  negative_prompt_tokens_cut: number | null;
}

/** How much of a request's texts was not read, which a picture of it tells; null before there is one. */
export function promptCutView([output]: readonly OutputInfo[]): PromptCutView {
  const read = (fact: string): number | null => (output === undefined ? null : Number(output[fact] ?? 0));
  return {
    prompt_tokens_cut: read('promptTokensCut'),
    negative_prompt_tokens_cut: read('negativePromptTokensCut'),
  };
}

export interface ProgressView {
  /** Which of the request's outputs. */
  index: number;
  step: number;
  total_steps: number;
  /** 0 to 1. */
  progress: number;
}

export function progressView({ index, done, total = 0 }: OutputProgress): ProgressView {
  return { index, step: done, total_steps: total, progress: total > 0 ? done / total : 0 };
}

/** ISO 8601, or null for what has not happened. */
export function isoTime<Time extends number | undefined>(timeMs: Time): Time extends number ? string : string | null {
  return (timeMs === undefined ? null : new Date(timeMs).toISOString()) as Time extends number ? string : string | null;
}
