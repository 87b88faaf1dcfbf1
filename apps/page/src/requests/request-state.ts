import type { Image, RequestEvent, RequestView } from '@darkroom/client';
import { lifeAfterEvent, lifeAfterPoll, newLife, type RequestLife } from './request-life.ts';

/** The state of one image of a request. */
export interface ImageState {
  step: number;
  /** 0 if unknown. */
  totalSteps: number;
  /** The latest preview as a data URL. */
  preview?: string | undefined;
  file?: { blob: Blob; seed: number } | undefined;
}

/** The state of a request for images. Immutable. */
export interface ImageRequestState extends RequestLife {
  images: readonly ImageState[];
  /** Tokens cut off at the prompt's end; 0 if unknown. */
  promptTokensCut: number;
  /** True if the server stores its input images. */
  hasInputs: boolean;
}

export function newRequestState(n: number): ImageRequestState {
  const images = Array.from({ length: n }, () => ({ step: 0, totalSteps: 0 }));
  return { ...newLife, images, promptTokensCut: 0, hasInputs: false };
}

export function stateAfterEvent(before: ImageRequestState, event: RequestEvent): ImageRequestState {
  const state = lifeAfterEvent(before, event);
  switch (event.type) {
    case 'progress': {
      if (event.tokens !== undefined) return state;
      const { index, step, total_steps: totalSteps, preview } = event;
      const images = withImage(state, index, { step, totalSteps, ...(preview !== undefined && { preview }) });
      return { ...state, images };
    }
    case 'image':
      return stateWithImage(state, event);
    case 'succeeded':
      return { ...state, promptTokensCut: event.images === undefined ? 0 : (event.prompt_tokens_cut ?? 0) };
    case 'queued':
    case 'started':
    case 'loading':
    case 'delta':
    case 'snapshot':
    case 'reset':
    case 'text':
    case 'failed':
    case 'canceled':
    case 'expired':
      return state;
  }
}

export function stateWithImage(
  state: ImageRequestState,
  { index, data, content_type, seed }: Pick<Image, 'index' | 'data' | 'content_type' | 'seed'>,
): ImageRequestState {
  const file = { blob: new Blob([data], { type: content_type }), seed };
  return { ...state, images: withImage(state, index, { file }) };
}

/** Applies a poll. Steps are taken from it only if no events are streamed: events are newer. */
export function stateAfterPoll(before: ImageRequestState, view: RequestView, isStreaming: boolean): ImageRequestState {
  const hasInputs = view.images !== undefined && typeof view.parameters.image === 'string';
  const state = { ...lifeAfterPoll(before, view, isStreaming), hasInputs };
  if (isStreaming || view.images === undefined) return state;
  const share = Math.max(1, state.images.length);
  const step = Math.floor(view.step / share);
  const totalSteps = Math.floor(view.total_steps / share);
  return {
    ...state,
    images: state.images.map((image) => ({ ...image, step: Math.max(step, image.step), totalSteps })),
    promptTokensCut: view.prompt_tokens_cut ?? 0,
  };
}

function withImage(state: ImageRequestState, index: number, change: Partial<ImageState>): readonly ImageState[] {
  return state.images.map((image, at) => (at === index ? { ...image, ...change } : image));
}
