import { type ImageInput, imageSteps, imageTypeOf } from '@darkroom/kinds';
import type { CallEvent } from '../../calls/backend-client.ts';
import type { ComfyMessage } from './comfy-message.ts';

/** Turns the progress of a workflow's nodes into the steps of an image, which only increase. */
export class StepCounter {
  readonly #input: ImageInput;
  readonly #workflow: { countsSteps(node: string): boolean };
  readonly #total: number;
  #done = 0;
  #isCounting = false;

  constructor(input: ImageInput, workflow: { countsSteps(node: string): boolean }) {
    this.#input = input;
    this.#workflow = workflow;
    this.#total = imageSteps(input);
  }

  /** Returns undefined for a message that is only a sign of life. */
  read(message: ComfyMessage): CallEvent {
    const total = this.#total;
    if (message.type === 'preview') return this.#preview(message.data);
    if (message.type !== 'progress') return undefined;
    this.#isCounting = message.max > 0 && this.#workflow.countsSteps(message.node);
    if (!this.#isCounting) return undefined;
    this.#done = Math.max(this.#done, Math.min(total, Math.round((message.value / message.max) * total)));
    return { type: 'progress', done: this.#done, total };
  }

  /** A preview follows the progress of its step. */
  #preview(data: Uint8Array): CallEvent {
    const [done, total] = [this.#done, this.#total];
    const { previewEvery } = this.#input;
    const isDue = this.#isCounting && previewEvery > 0 && done > 0 && done < total && done % previewEvery === 0;
    const contentType = imageTypeOf(data);
    if (!isDue || contentType === undefined) return undefined;
    return { type: 'progress', done, total, preview: { data, contentType, facts: {} } };
  }
}
