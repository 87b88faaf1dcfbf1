import type { RowOutput } from '@darkroom/core';
import { type ImageInput, imageSteps, imageTypeOf } from '@darkroom/kinds';
import type { CallEvent } from '../../calls/backend-client.ts';
import type { ComfyMessage } from './comfy-message.ts';

/** Max size of a preview: a header, and the figure per pixel by which the store bounds a request's previews. */
const previewHeadBytes = 2048;
const previewBytesPerPixel = 0.25;

/** Turns the progress of a workflow's nodes into the steps of an image, which only increase. */
export class StepCounter {
  readonly #previewEvery: number;
  readonly #workflow: { countsSteps(node: string): boolean };
  readonly #total: number;
  readonly #maxPreviewBytes: number;
  #done = 0;
  #reported = 0;
  #isCounting = false;
  /** False if a step had no preview: the server draws none. */
  #hasPreviews = true;

  constructor(input: ImageInput, workflow: { countsSteps(node: string): boolean }) {
    this.#previewEvery = input.previewEvery;
    this.#workflow = workflow;
    this.#total = imageSteps(input);
    this.#maxPreviewBytes = previewHeadBytes + input.width * input.height * previewBytesPerPixel;
  }

  /** Returns undefined for a message that is only a sign of life. */
  read(message: ComfyMessage): CallEvent {
    const total = this.#total;
    if (message.type === 'preview') return this.#preview(message.data);
    if (message.type !== 'progress') return undefined;
    this.#isCounting = message.max > 0 && this.#workflow.countsSteps(message.node);
    if (!this.#isCounting) return undefined;
    if (this.#reported < this.#done) this.#hasPreviews = false;
    this.#done = Math.max(this.#done, Math.min(total, Math.round((message.value / message.max) * total)));
    // The preview of a step follows its progress, and both are one event.
    return this.#hasPreviews && this.#isPreviewDue() ? undefined : this.#report();
  }

  /** Returns the last step, unless it was reported. */
  end(): CallEvent {
    this.#done = this.#total;
    return this.#report();
  }

  #preview(data: Uint8Array): CallEvent {
    const contentType = imageTypeOf(data);
    if (!this.#isCounting || !this.#isPreviewDue() || contentType === undefined) return undefined;
    // The step of a preview that is too large is reported without it.
    return this.#report(data.byteLength > this.#maxPreviewBytes ? undefined : { data, contentType, facts: {} });
  }

  #isPreviewDue(): boolean {
    const [done, every] = [this.#done, this.#previewEvery];
    return every > 0 && done > 0 && done < this.#total && done % every === 0;
  }

  /** Returns undefined if the step was reported: each is reported once. */
  #report(preview?: RowOutput): CallEvent {
    const [done, total] = [this.#done, this.#total];
    if (done <= this.#reported) return undefined;
    this.#reported = done;
    return { type: 'progress', done, total, ...(preview && { preview }) };
  }
}
