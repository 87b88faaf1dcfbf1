import { DarkroomError, OwnerTurns } from '@darkroom/core';
import type { Requester } from '../../request/request-fields.ts';
import { weightOf } from '../form/text-limits.ts';
import { PromptThread } from './prompt-thread.ts';
import { type PromptJob, type PromptRead, readPrompt, renderJob } from './read-prompt.ts';
import type { TextCodec } from './text-codec.ts';

/** Maximum weight of prompts that are read on the event loop, which takes up to a tenth of a second. */
const maxInlineWeight = 8192;
/** Maximum weight of all prompts that wait for a thread; one prompt may always wait. */
const maxWaitingWeight = 16_000_000;
/** Time limit for one prompt, and the addition for each unit of its weight. */
const limitMs = 5000;
const msPerUnit = 0.01;

/** Reads one large prompt at a time over all models, to leave the machine's other cores free. */
const turns = new OwnerTurns({ concurrency: 1, maxWaitingPerOwner: 8 });
let waitingWeight = 0;

const anyClient: Requester = { owner: '', signal: new AbortController().signal };

/**
 * Renders and tokenizes the prompts of one model. Reads large prompts in a thread with limits on time and memory, in
 * turns per owner.
 */
export class PromptReader {
  readonly #codec: Pick<TextCodec, 'renderChat' | 'encode'>;
  readonly #thread: PromptThread;

  /** @param document the codec's document. The thread starts with the first large prompt and does not delay exit. */
  constructor(document: Uint8Array, codec: Pick<TextCodec, 'renderChat' | 'encode'>) {
    this.#codec = codec;
    this.#thread = new PromptThread(document);
  }

  /** Rejects with `overloaded` while too many prompts wait, and with `invalid_request` if the client disconnects. */
  async read(job: PromptJob, requester: Requester = anyClient): Promise<PromptRead> {
    const weight = weightOf(job);
    if (weight > maxInlineWeight) return this.#readInTurn(job, weight, requester);
    const rendered = renderJob(this.#codec, job);
    if ('problem' in rendered) return rendered;
    const { length } = rendered.prompt;
    return length > maxInlineWeight ? this.#readInTurn(rendered, length, requester) : readPrompt(this.#codec, rendered);
  }

  /** Ends the thread once it has read every prompt that waits. */
  close(): void {
    this.#thread.close();
  }

  async #readInTurn(job: PromptJob, weight: number, requester: Requester): Promise<PromptRead> {
    if (waitingWeight > 0 && waitingWeight + weight > maxWaitingWeight) throw tooMuch();
    waitingWeight += weight;
    try {
      const release = await turnOf(requester);
      return await this.#thread.read(job, limitMs + weight * msPerUnit).finally(release);
    } finally {
      waitingWeight -= weight;
    }
  }
}

async function turnOf({ owner, signal }: Requester): Promise<() => void> {
  let release: (() => void) | undefined;
  try {
    release = await turns.acquire(owner, signal);
  } catch (error) {
    const message = 'the client disconnected before its prompt was read';
    throw new DarkroomError('invalid_request', 'text.read-prompt', message, error);
  }
  if (release === undefined) throw tooMuch();
  return release;
}

function tooMuch(): DarkroomError {
  return new DarkroomError('overloaded', 'text.read-prompt', 'Too many long prompts are being read, try again later.');
}
