import { drawSeed } from '../requests/draw-seed.ts';
import { errorWords } from '../server/error-words.ts';
import type { Session } from '../server/session.ts';
import { announce } from '../shell/announce.ts';
import { findElement } from '../shell/find-element.ts';
import { newTextState, type TextState, textAfterEvent, textWords } from './text-state.ts';

/** What to ask where nobody said what is wished for. */
const anyWish = 'surprise me';

/** The button beside the prompt: asks the writer for one, of what stands in the field, if anything does. */
export function createWritePrompt(form: HTMLFormElement, session: Session, chosenWriter: () => string | undefined) {
  const button = findElement(form, '#write-prompt', HTMLButtonElement);
  const prompt = findElement(form, '#prompt', HTMLTextAreaElement);
  const problem = findElement(form, '[role=alert]', HTMLParagraphElement);
  /** The last wish, and what was made of it: asked again, the wish is meant and not the prompt. */
  let last = { wish: '', written: '' };
  let run: AbortController | undefined;
  const write = async (model: string, signal: AbortSignal): Promise<void> => {
    const typed = prompt.value;
    const wish = typed.trim() !== '' && typed === last.written ? last.wish : typed.trim() || anyWish;
    try {
      const state = await askFor(wish, { session, model, signal, onGrowth: (text) => (prompt.value = text) });
      if (state.status === 'succeeded') {
        last = { wish, written: state.text };
        announce(`Written: ${state.text}`);
      } else {
        prompt.value = typed;
        problem.textContent = textWords(state);
      }
    } catch (error) {
      // What somebody has typed meanwhile stays.
      if (!signal.aborted || signal.reason !== 'typed') prompt.value = typed;
      if (!signal.aborted) problem.textContent = errorWords(error);
    }
  };
  button.addEventListener('click', () => {
    const model = chosenWriter();
    if (run !== undefined || model === undefined) return run?.abort();
    run = new AbortController();
    problem.textContent = '';
    button.textContent = 'Stop';
    void write(model, run.signal).finally(() => {
      run = undefined;
      button.textContent = 'Write me one';
    });
  });
  prompt.addEventListener('input', () => run?.abort('typed'));
  return { showWriters: (): void => void (button.hidden = chosenWriter() === undefined) };
}

interface AskOptions {
  session: Session;
  model: string;
  signal: AbortSignal;
  /** What stands by now. */
  onGrowth: (text: string) => void;
}

/** What the writer makes of a wish, as it is in the end. Aborted, it is canceled. */
async function askFor(wish: string, { session, model, signal, onGrowth }: AskOptions): Promise<TextState> {
  const { client } = session;
  // Some heat: the same wish twice is meant to give two prompts.
  const request = { model, messages: [{ role: 'user', content: wish }], seed: drawSeed(), temperature: 0.8 };
  // To its end, even if nobody wants it any more: only then it can be canceled.
  const { request_id: id } = await client.submit(request);
  let state = newTextState;
  try {
    signal.throwIfAborted();
    for await (const event of client.stream(id, { signal })) {
      state = textAfterEvent(state, event);
      onGrowth(state.text);
    }
  } catch (error) {
    if (signal.aborted) client.cancel(id).catch(() => {});
    throw error;
  }
  return state;
}
