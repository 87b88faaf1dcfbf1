import { SlotBuffers, type SlotCache, type SlotKind } from './slot-buffers.ts';

/** A required capacity. */
export interface SlotCapacity {
  readonly slots: number;
  /** Tokens of the longest row. */
  readonly columns: number;
}

/** The buffers that will replace the current ones, and the number of tokens moved per row. */
interface SlotMove {
  readonly buffers: SlotBuffers;
  readonly moved: Map<SlotCache, number>;
}

const columnsOfBlock = 64;
/** Columns to keep free behind the longest row; with fewer, larger buffers are allocated. */
const columnsAhead = 32;
/** Tokens to move per call, unless more are necessary. */
const tokensOfMove = 128;
/** Max total tokens of spare slots for new rows; none if slots are longer. */
const spareTokens = 2048;
/** Number of calls after which unused memory is freed. */
const callsOfWindow = 256;

/**
 * Buffers that are resized incrementally: rows move to the new buffers some tokens per call, and the new ones replace
 * the old once complete. No call waits for a full copy.
 */
export class SlotMemory {
  /** Called with the new slot length before slots grow, so that rows can be released to stay within a limit. */
  beforeGrowth: (columns: number) => void = () => {};
  readonly #kind: SlotKind;
  #now: SlotBuffers;
  #next: SlotMove | undefined;
  #calls = 0;
  /** Max over this window's calls of slots times the longest row. */
  #maxTokens = 0;

  constructor(kind: SlotKind) {
    this.#kind = kind;
    this.#now = new SlotBuffers(kind, 2, columnsOfBlock);
  }

  /** The current buffers; valid until the next call. */
  get buffers(): SlotBuffers {
    return this.#now;
  }

  /** Tokens per slot, once the move is complete. */
  get columns(): number {
    return Math.max(this.#now.columns, this.#next?.buffers.columns ?? 0);
  }

  /** Returns the capacity for the current rows plus `newcomers`. */
  capacityFor(newcomers: number, columns: number): SlotCapacity {
    // Reserve one column more: a row that only pads a call, or has an odd chunk, gets an extra token.
    const longest = Math.max(columns, longestOf(this.#owners())) + 1;
    if (longest > this.columns) this.beforeGrowth(this.#grown(longest));
    return { slots: this.#owners().length + newcomers, columns: longest };
  }

  /**
   * Call at the start of each model call. Starts or continues replacing buffers that are too small, or have long been
   * too large.
   */
  noteCall(): void {
    const owners = this.#owners();
    const longest = longestOf(owners);
    this.#maxTokens = Math.max(this.#maxTokens, Math.max(2, owners.length) * (longest + columnsAhead));
    this.#calls = (this.#calls + 1) % callsOfWindow;
    const slots = this.#now.owners.length;
    if (this.#calls === 0) {
      const isTooLarge = 4 * this.#maxTokens < slots * this.#now.columns;
      if (isTooLarge) this.#begin(Math.max(2, owners.length), longest + columnsAhead);
      this.#maxTokens = 0;
    }
    if (this.#next !== undefined) this.#move(this.#next, tokensOfMove);
    else this.grow(this.capacityFor(0, longest + columnsAhead - 1));
  }

  /**
   * Continues making room if there is not enough.
   *
   * @param tokens min number of tokens to move now.
   * @returns true if there is enough room.
   */
  grow(capacity: SlotCapacity, tokens = tokensOfMove): boolean {
    if (this.fits(capacity)) return true;
    const { owners, columns } = this.#now;
    let next = this.#next;
    if (next === undefined) {
      const grown = columns < capacity.columns ? this.#grown(capacity.columns) : columns;
      const doubled = owners.length < capacity.slots ? 2 * owners.length : owners.length;
      const max = capacity.slots + Math.floor(spareTokens / grown);
      // A call has at least two rows.
      next = this.#begin(Math.max(2, capacity.slots, Math.min(doubled, max)), grown);
    }
    this.#move(next, tokens);
    return this.fits(capacity);
  }

  /** Assigns a free slot to a row; there must be one. */
  claim(cache: SlotCache): void {
    cache.slot = this.#now.owners.indexOf(undefined);
    this.#now.owners[cache.slot] = cache;
  }

  release(cache: SlotCache): void {
    if (cache.slot >= 0) this.#now.owners[cache.slot] = undefined;
    cache.slot = -1;
    cache.length = 0;
    const owners = this.#next?.buffers.owners;
    const nextSlot = owners?.indexOf(cache) ?? -1;
    if (owners !== undefined && nextSlot >= 0) owners[nextSlot] = undefined;
  }

  #owners(): SlotCache[] {
    return this.#now.owners.filter((owner) => owner !== undefined);
  }

  /** Returns true if the current buffers have this capacity. */
  fits({ slots, columns }: SlotCapacity): boolean {
    return slots <= this.#now.owners.length && columns <= this.#now.columns;
  }

  #begin(slots: number, columns: number): SlotMove {
    this.#next = { buffers: new SlotBuffers(this.#kind, slots, inBlocks(columns)), moved: new Map() };
    return this.#next;
  }

  /** How long slots are made that are to be so long at least. */
  #grown(columns: number): number {
    return inBlocks(Math.max(columns, 1.5 * this.#now.columns));
  }

  /** Moves at least so many tokens, and more if the last columns would be taken before all is moved. */
  #move({ buffers, moved }: SlotMove, tokens: number): void {
    const owners = this.#owners();
    const longest = longestOf(owners);
    const missing = (owner: SlotCache) => owner.length - (moved.get(owner) ?? 0);
    const all = owners.reduce((sum, owner) => sum + missing(owner), 0);
    let left = Math.max(tokens, Math.ceil(all / Math.max(1, this.#now.columns - longest)));
    for (const owner of owners) {
      const known = buffers.owners.indexOf(owner);
      const slot = known === -1 ? buffers.owners.indexOf(undefined) : known;
      // More rows have come since, or longer ones.
      if (slot === -1 || longest >= buffers.columns) {
        this.#next = undefined;
        return;
      }
      buffers.owners[slot] = owner;
      const first = moved.get(owner) ?? 0;
      const end = first + Math.min(left, missing(owner));
      buffers.copyTokens(this.#now, owner.slot, slot, { first, end });
      moved.set(owner, end);
      left -= end - first;
    }
    if (owners.every((owner) => missing(owner) === 0)) this.#replace(buffers);
  }

  #replace(buffers: SlotBuffers): void {
    for (const [slot, owner] of buffers.owners.entries())
      if (owner !== undefined)
        buffers.copyTokens(this.#now, owner.slot, slot, { first: owner.length, end: owner.usedLength });
    this.#now = buffers;
    this.#next = undefined;
    for (const [slot, owner] of buffers.owners.entries()) if (owner !== undefined) owner.slot = slot;
  }
}

function inBlocks(columns: number): number {
  return Math.ceil(columns / columnsOfBlock) * columnsOfBlock;
}

/** Tokens of the longest row, or those that it is about to have. */
function longestOf(owners: readonly SlotCache[]): number {
  return owners.reduce((max, { usedLength, expected }) => Math.max(max, usedLength, expected), 0);
}
