import type { Session } from '../server/session.ts';
import { errorWords } from '../server/error-words.ts';
import { drawSeed } from '../requests/draw-seed.ts';
import { announce } from '../shell/announce.ts';
import { findElement } from '../shell/find-element.ts';
import { newTextState, textAfterEvent } from './text-state.ts';

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
  const stop = (): void => run?.abort();
  const write = async (model: string, signal: AbortSignal): Promise<void> => {
    const typed = prompt.value.trim();
    const wish = typed !== '' && typed === last.written ? last.wish : typed || anyWish;
    const messages = [{ role: 'user', content: wish }];
    // Some heat: the same wish twice is meant to give two prompts.
    const request = { model, messages, seed: drawSeed(), temperature: 0.8 };
    const { client } = session;
    const { request_id: id } = await client.submit(request, { signal });
    let state = newTextState;
    try {
      for await (const event of client.stream(id, { signal })) {
        state = textAfterEvent(state, event);
        prompt.value = state.text;
        if (event.type === 'failed') throw new Error(event.error.message);
      }
      last = { wish, written: state.text.trim() };
      announce(`Written: ${state.text}`);
    } catch (error) {
      prompt.value = typed;
      if (signal.aborted) await client.cancel(id).catch(() => {});
      throw error;
    }
  };
  button.addEventListener('click', () => {
    const model = chosenWriter();
    if (run !== undefined || model === undefined) return stop();
    const { signal } = (run = new AbortController());
    problem.textContent = '';
    button.textContent = 'Stop';
    write(model, signal)
      .catch((error: unknown) => {
        if (!signal.aborted) problem.textContent = errorWords(error);
      })
      .finally(() => {
        run = undefined;
        button.textContent = 'Write me one';
      });
  });
  // Whoever types does not want to be written over.
  prompt.addEventListener('input', stop);
  return { showWriters: (): void => void (button.hidden = chosenWriter() === undefined) };
}
