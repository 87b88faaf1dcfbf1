import { type RequestEvent, type RequestView, textAfter } from '@darkroom/client';
import { isOpen, lifeAfterEvent, lifeAfterPoll, newLife, type RequestLife } from '../requests/request-life.ts';
import { lifeWords } from '../requests/status-words.ts';

/** Character that a block-diffusion model writes for a token that is not decided yet. */
export const mask = '░';

/** The state of a request for one text. Immutable. */
export interface TextState extends RequestLife {
  /** The text so far, including masks. */
  text: string;
  /** Tokens of the text; 0 until it ends. */
  tokens: number;
  /** Model calls for the text; 0 until it ends. */
  calls: number;
}

export const newTextState: TextState = { ...newLife, text: '', tokens: 0, calls: 0 };

export function textAfterEvent(before: TextState, event: RequestEvent): TextState {
  const state = lifeAfterEvent(before, event);
  switch (event.type) {
    case 'delta':
    case 'snapshot':
    case 'reset':
      return { ...state, text: textAfter(state.text, event) };
    case 'text':
      return { ...state, text: event.text, tokens: event.completion_tokens, calls: event.calls };
    case 'queued':
    case 'started':
    case 'loading':
    case 'progress':
    case 'image':
    case 'succeeded':
    case 'failed':
    case 'canceled':
    case 'expired':
      return state;
  }
}

/**
 * Applies a poll. Does not set the text while events are streamed, or on the first poll of an open request, whose
 * events will bring the text from its start.
 */
export function textAfterPoll(before: TextState, view: RequestView, isStreaming: boolean): TextState {
  const state = lifeAfterPoll(before, view, isStreaming);
  if (view.texts === undefined || isStreaming || (before.status === 'unread' && isOpen(state))) return state;
  const { completion_tokens: tokens, nfe: calls } = view.usage;
  return { ...state, text: view.texts[0]?.text ?? '', tokens, calls };
}

/** Returns the text before its first mask: a text that was stopped within a block contains masks. */
export function usableText(text: string): string {
  return text.split(mask, 1)[0]!.trimEnd();
}

/** Describes the state of a request for the status line. */
export function textWords(state: TextState): string {
  const { tokens, calls, startedAtMs, endedAtMs } = state;
  const count = `${tokens} ${tokens === 1 ? 'token' : 'tokens'}`;
  const inCalls = calls === tokens ? '' : ` with ${calls} model ${calls === 1 ? 'call' : 'calls'}`;
  const succeeded = `${count}${inCalls}${timeWords(startedAtMs, endedAtMs)}`;
  return lifeWords(state, { running: 'Writing…', succeeded, outputs: 'texts' });
}

/** Formats the run time. Uses milliseconds below 1 s, because small models take less than 0.1 s. */
function timeWords(startedAtMs: number | undefined, endedAtMs: number | undefined): string {
  if (startedAtMs === undefined || endedAtMs === undefined) return '';
  const ms = Math.max(0, endedAtMs - startedAtMs);
  return ms < 1000 ? ` in ${ms} ms` : ` in ${(ms / 1000).toFixed(1)} s`;
}
