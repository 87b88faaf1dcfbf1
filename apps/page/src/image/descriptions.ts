import { errorWords } from '../server/error-words.ts';
import type { Session } from '../server/session.ts';
import { announce } from '../shell/announce.ts';

const question = 'Describe the image.';

export interface DescriptionsOptions {
  session: Session;
  /** Request of the images. */
  id: string;
  /** Number of its images. */
  count: number;
  /** Returns the model that describes images; undefined if none is served. */
  imageReader: () => string | undefined;
}

export interface DescribeImageOptions {
  model: string;
  /** The request and the position of the image in it. */
  id: string;
  index: number;
  signal: AbortSignal;
}

/** Asks a model what it sees in an image. */
export async function describeImage(
  { client }: Session,
  { model, id, index, signal }: DescribeImageOptions,
): Promise<string> {
  const image = `/v1/predict/${id}/images/${index}`;
  const { request_id: answerId } = await client.submit({ model, prompt: question, image });
  const { status, texts = [] } = await client.wait(answerId, { signal });
  return status === 'succeeded' ? (texts[0]?.text ?? '') : `The model could not describe it: ${status}.`;
}

/** Creates the list of what a model sees in the images of a request: one line for each. */
export function createDescriptions(list: HTMLElement, { session, id, count, imageReader }: DescriptionsOptions) {
  let run: AbortController | undefined;
  return {
    /** Asks the model about all images, one after the other. */
    async write(): Promise<void> {
      const model = imageReader();
      if (run !== undefined || model === undefined) return;
      run = new AbortController();
      const { signal } = run;
      list.hidden = false;
      list.replaceChildren();
      try {
        for (let index = 0; index < count; index++) {
          const item = document.createElement('li');
          item.textContent = 'Looking…';
          list.append(item);
          item.textContent = await describeImage(session, { model, id, index, signal });
          announce(item.textContent);
        }
      } catch (error) {
        if (!signal.aborted) list.lastElementChild!.textContent = errorWords(error);
      } finally {
        run = undefined;
      }
    },
    /** Stops waiting for answers. */
    stop: (): void => run?.abort(),
  };
}
