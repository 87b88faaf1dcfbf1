import { ClientError } from '@darkroom/client';
import { absenceOf, errorWords } from '../server/error-words.ts';
import type { Session } from '../server/session.ts';
import { announce } from '../shell/announce.ts';
import { followRequest } from './follow-request.ts';
import type { GalleryEntry } from './gallery-storage.ts';
import { isOpen } from './request-life.ts';
import {
  newRequestState,
  type ImageRequestState,
  stateAfterEvent,
  stateAfterPoll,
  stateWithImage,
} from './request-state.ts';
import { statusWords } from './status-words.ts';
import type { StreamSlots } from './stream-slots.ts';

export interface TrackRequestOptions {
  entry: GalleryEntry;
  session: Session;
  slots: StreamSlots;
  onChange: (state: ImageRequestState) => void;
}

/** A request with its state, which is updated while it is followed. */
export class TrackedRequest {
  readonly #options: TrackRequestOptions;
  #state: ImageRequestState;
  /** Id of the last event seen. */
  #last: string | undefined;
  #following: AbortController | undefined;

  constructor(options: TrackRequestOptions) {
    this.#options = options;
    this.#state = newRequestState(options.entry.request.n ?? 1);
  }

  get entry(): GalleryEntry {
    return this.#options.entry;
  }

  get state(): ImageRequestState {
    return this.#state;
  }

  /** Continues to follow the request, unless it is being followed already or is complete. Clears its problem then. */
  resume(): void {
    if (this.#following !== undefined) return;
    if (isComplete(this.#state)) {
      if (this.#state.problem !== undefined) this.#change({ ...this.#state, problem: undefined });
      return;
    }
    const stop = (this.#following = new AbortController());
    this.#follow(stop.signal)
      .catch((error: unknown) => {
        if (!stop.signal.aborted) this.#change(afterError(this.#state, error));
      })
      .finally(() => {
        stop.abort();
        if (this.#following === stop) this.#following = undefined;
      });
  }

  pause(): void {
    this.#following?.abort();
    this.#following = undefined;
  }

  async cancel(): Promise<void> {
    if (!isOpen(this.#state) || this.#state.isCanceling) return;
    this.#change({ ...this.#state, isCanceling: true });
    try {
      await this.#options.session.client.cancel(this.#options.entry.id);
    } catch (error) {
      // 409: it ended at the same moment; the next update shows how.
      const isLate = error instanceof ClientError && error.status === 409;
      this.#change({ ...this.#state, isCanceling: false, problem: isLate ? undefined : errorWords(error) });
    }
  }

  /** Keeps the images for longer, or takes that back. */
  async togglePin(): Promise<void> {
    const { client } = this.#options.session;
    const { id } = this.#options.entry;
    try {
      const { is_pinned: isPinned, expires_at } = await (this.#state.isPinned ? client.unpin(id) : client.pin(id));
      this.#change({ ...this.#state, isPinned, expiresAtMs: Date.parse(expires_at ?? ''), problem: undefined });
    } catch (error) {
      this.#change(afterError(this.#state, error));
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { session, slots, entry } = this.#options;
    const { client } = session;
    const { id } = entry;
    await followRequest({
      client,
      id,
      slots,
      signal,
      after: () => this.#last,
      isQueued: () => this.#state.status === 'queued',
      onPoll: (view, isStreaming) => this.#change(stateAfterPoll(this.#state, view, isStreaming)),
      onEvent: (event) => {
        this.#last = event.id;
        this.#change(stateAfterEvent(this.#state, event));
      },
      onEndedPoll: async () => {
        const images = await client.images(id, { signal });
        this.#change(images.reduce(stateWithImage, this.#state));
      },
    });
    // Events do not contain the time until which it is stored.
    if (this.#state.status === 'succeeded' && this.#state.expiresAtMs === undefined)
      this.#change(stateAfterPoll(this.#state, await client.get(id, { signal }), false));
  }

  #change(next: ImageRequestState): void {
    const news = newsOf(this.#state, next);
    this.#state = next;
    this.#options.onChange(next);
    if (news !== undefined) announce(`${news}: ${this.#options.entry.request.prompt}`);
  }
}

function isComplete(state: ImageRequestState): boolean {
  if (isOpen(state)) return false;
  return state.status !== 'succeeded' || state.images.every(({ file }) => file !== undefined);
}

function afterError(state: ImageRequestState, error: unknown): ImageRequestState {
  const absence = absenceOf(error);
  if (absence !== undefined) return { ...state, status: absence, problem: undefined };
  return { ...state, problem: errorWords(error) };
}

/** Returns a message for screen readers if the request started, ended or failed; not for every step. */
function newsOf(before: ImageRequestState, after: ImageRequestState): string | undefined {
  const isRead = before.status !== 'unread' && before.status !== after.status;
  const isProblem = after.problem !== undefined && after.problem !== before.problem;
  return isRead || isProblem ? statusWords(after) : undefined;
}
