import type { FormProblem } from '../image/form-problem.ts';
import { drawSeed } from '../requests/draw-seed.ts';
import { errorWords } from '../server/error-words.ts';
import type { Session } from '../server/session.ts';
import { announce } from '../shell/announce.ts';
import { findElement } from '../shell/find-element.ts';
import { newTextState, type TextState, textAfterEvent, textWords } from './text-state.ts';

/** The wish for an empty field. */
const anyWish = 'surprise me';

export interface CreateWritePromptOptions {
  form: HTMLFormElement;
  problem: FormProblem;
  session: Session;
  /** Returns the chosen model; undefined if there is none. */
  chosenWriter: () => string | undefined;
}

/** Creates the button beside the prompt that lets the writer write one, based on the field's text if there is any. */
export function createWritePrompt({ form, problem, session, chosenWriter }: CreateWritePromptOptions) {
  const button = findElement(form, '#write-prompt', HTMLButtonElement);
  const prompt = findElement(form, '#prompt', HTMLTextAreaElement);
  /** The last wish and its prompt. If the field still contains that prompt, the button repeats the wish. */
  let last = { wish: '', written: '' };
  let run: AbortController | undefined;
  const write = async (model: string, signal: AbortSignal): Promise<void> => {
    const typed = prompt.value;
    const wish = typed.trim() !== '' && typed === last.written ? last.wish : typed.trim() || anyWish;
    try {
      const state = await writePromptFor(wish, { session, model, signal, onGrowth: (text) => (prompt.value = text) });
      if (state.status === 'succeeded') {
        last = { wish, written: state.text };
        announce(`Written: ${state.text}`);
      } else {
        prompt.value = typed;
        problem.show(textWords(state));
      }
    } catch (error) {
      // Text typed in the meantime is preserved.
      if (!signal.aborted || signal.reason !== 'typed') prompt.value = typed;
      if (!signal.aborted) problem.show(errorWords(error));
    }
  };
  button.addEventListener('click', () => {
    const model = chosenWriter();
    if (run !== undefined || model === undefined) return run?.abort();
    run = new AbortController();
    problem.clear();
    button.textContent = 'Stop';
    void write(model, run.signal).finally(() => {
      run = undefined;
      button.textContent = 'Write a prompt';
    });
  });
  prompt.addEventListener('input', () => run?.abort('typed'));
  return { showWriters: (): void => void (button.hidden = chosenWriter() === undefined) };
}

interface WritePromptOptions {
  session: Session;
  model: string;
  signal: AbortSignal;
  /** Called with the text so far. */
  onGrowth: (text: string) => void;
}

/** Writes a prompt; resolves with its final state. Cancels the request if aborted. */
async function writePromptFor(
  wish: string,
  { session, model, signal, onGrowth }: WritePromptOptions,
): Promise<TextState> {
  const { client } = session;
  // Sampled, so that the same wish gives different prompts.
  const request = { model, messages: [{ role: 'user', content: wish }], seed: drawSeed(), temperature: 0.8 };
  // Not abortable: only a request with a known id can be canceled.
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
