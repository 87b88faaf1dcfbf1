import type { RequestEvent, RequestView } from '@darkroom/client';
import { isOpen, lifeAfterEvent, lifeAfterPoll, newLife, type RequestLife } from '../requests/request-life.ts';
import { lifeWords } from '../requests/status-words.ts';

/** What stands for a token that is not known yet. */
export const mask = '░';

/** What the page knows of a request of one text. Never changed, always replaced. */
export interface TextState extends RequestLife {
  /** What stands, masks included. */
  text: string;
  /** Written, or known in a block; 0 as long as nobody has said. */
  tokens: number;
  /** Calls of the model for them. */
  calls: number;
}

export const newTextState: TextState = { ...newLife, text: '', tokens: 0, calls: 0 };

export function textAfterEvent(before: TextState, event: RequestEvent): TextState {
  const state = lifeAfterEvent(before, event);
  switch (event.type) {
    case 'delta': {
      // What stands already may be ahead: a poll said it.
      const isKnown = state.text.startsWith(event.text, event.offset);
      return isKnown ? state : { ...state, text: state.text.slice(0, event.offset) + event.text };
    }
    case 'snapshot':
      return { ...state, text: state.text.slice(0, event.offset) + event.text };
    case 'reset':
      return { ...state, text: state.text.slice(0, event.offset) };
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

/** A first poll is only asked for where the request is: its events, which come next, bring the text from the beginning. */
export function textAfterPoll(before: TextState, view: RequestView, isStreaming: boolean): TextState {
  const state = lifeAfterPoll(before, view, isStreaming);
  if (view.texts === undefined || isStreaming || (before.status === 'unread' && isOpen(state))) return state;
  const { completion_tokens: tokens, nfe: calls } = view.usage;
  return { ...state, text: view.texts[0]?.text ?? '', tokens, calls };
}

/** What is worth keeping of a text that may have been stopped in the middle of a block. */
export function keptText(text: string): string {
  return text.split(mask, 1)[0]!.trimEnd();
}

/** Where it is, for people. */
export function textWords(state: TextState): string {
  const { tokens, calls, startedAtMs, endedAtMs } = state;
  const count = `${tokens} ${tokens === 1 ? 'token' : 'tokens'}`;
  const inCalls = calls === tokens ? '' : ` with ${calls} ${calls === 1 ? 'call' : 'calls'} of the model`;
  const succeeded = `${count}${inCalls}${timeWords(startedAtMs, endedAtMs)}`;
  return lifeWords(state, { running: 'Writing…', succeeded, outputs: 'texts' });
}

/** Small models are done in less than a tenth of a second. */
function timeWords(startedAtMs: number | undefined, endedAtMs: number | undefined): string {
  if (startedAtMs === undefined || endedAtMs === undefined) return '';
  const ms = Math.max(0, endedAtMs - startedAtMs);
  return ms < 1000 ? ` in ${ms} ms` : ` in ${(ms / 1000).toFixed(1)} s`;
}
