import type { Picture, RequestEvent, RequestView } from '@darkroom/client';
import { lifeAfterEvent, lifeAfterPoll, newLife, type RequestLife } from './request-life.ts';

/** One picture of a request, from blank paper to the file. */
export interface PictureState {
  step: number;
  /** 0 as long as nobody has said. */
  totalSteps: number;
  /** The work so far as a data URL. */
  preview?: string | undefined;
  file?: { blob: Blob; seed: number } | undefined;
}

/** What the page knows of a request of pictures. Never changed, always replaced. */
export interface RequestState extends RequestLife {
  pictures: readonly PictureState[];
  /** Tokens at the prompt's end that the model did not read; 0 as long as nobody has said. */
  promptTokensCut: number;
  /** The server has what it began with. */
  hasInputs: boolean;
}

export function newRequestState(n: number): RequestState {
  const pictures = Array.from({ length: n }, () => ({ step: 0, totalSteps: 0 }));
  return { ...newLife, pictures, promptTokensCut: 0, hasInputs: false };
}

export function stateAfterEvent(before: RequestState, event: RequestEvent): RequestState {
  const state = lifeAfterEvent(before, event);
  switch (event.type) {
    case 'progress': {
      if (event.tokens !== undefined) return state;
      const { index, step, total_steps: totalSteps, preview } = event;
      const pictures = withPicture(state, index, { step, totalSteps, ...(preview !== undefined && { preview }) });
      return { ...state, pictures };
    }
    case 'image':
      return stateWithPicture(state, event);
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

export function stateWithPicture(
  state: RequestState,
  { index, data, content_type, seed }: Pick<Picture, 'index' | 'data' | 'content_type' | 'seed'>,
): RequestState {
  const file = { blob: new Blob([data], { type: content_type }), seed };
  return { ...state, pictures: withPicture(state, index, { file }) };
}

/** What a poll says; of what develops, only where no events stream: these are ahead of it. */
export function stateAfterPoll(before: RequestState, view: RequestView, isStreaming: boolean): RequestState {
  const hasInputs = view.images !== undefined && typeof view.parameters.image === 'string';
  const state = { ...lifeAfterPoll(before, view, isStreaming), hasInputs };
  if (isStreaming || view.images === undefined) return state;
  const share = Math.max(1, state.pictures.length);
  const step = Math.floor(view.step / share);
  const totalSteps = Math.floor(view.total_steps / share);
  return {
    ...state,
    pictures: state.pictures.map((picture) => ({ ...picture, step: Math.max(step, picture.step), totalSteps })),
    promptTokensCut: view.prompt_tokens_cut ?? 0,
  };
}

function withPicture(state: RequestState, index: number, change: Partial<PictureState>): readonly PictureState[] {
  return state.pictures.map((picture, at) => (at === index ? { ...picture, ...change } : picture));
}
