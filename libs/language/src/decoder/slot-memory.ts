import { SlotBuffers, type SlotCache, type SlotKind } from './slot-buffers.ts';

/** What there is to be room for. */
export interface SlotRoom {
  readonly slots: number;
  /** Tokens of the longest row. */
  readonly columns: number;
}

const columnsOfBlock = 64;
/** Columns that are to be free behind the longest row: when there are fewer, larger buffers are made. */
const columnsAhead = 32;
/** Tokens that are moved at a time, unless more have to be. */
const tokensOfMove = 128;
/** Tokens that free slots are made for at most, for rows that may come: of long slots that is none. */
const spareTokens = 2048;
/** Calls after which memory that none of them needed is given back. */
const callsOfWindow = 256;

/**
 * The buffers of rows, which grow and shrink beside the calls: what is in them is moved into others some tokens at a time, and
 * these take their place when they have all of it. Nobody has to wait until everything is copied.
 */
export class SlotMemory {
  /** Told how long slots are to be before they are longer: rows may be released then, so that all together take no more. */
  beforeGrowth: (columns: number) => void = () => {};
  readonly #kind: SlotKind;
  #now: SlotBuffers;
  /** What is about to take its place, and how much of each row it has. */
  #next: { readonly buffers: SlotBuffers; readonly moved: Map<SlotCache, number> } | undefined;
  #calls = 0;
  /** Slots times the longest row, of the calls of this window. */
  #most = 0;

  constructor(kind: SlotKind) {
    this.#kind = kind;
    this.#now = new SlotBuffers(kind, 2, columnsOfBlock);
  }

  /** Until the next call. */
  get buffers(): SlotBuffers {
    return this.#now;
  }

  /** Tokens of each slot, once all is moved. */
  get columns(): number {
    return Math.max(this.#now.columns, this.#next?.buffers.columns ?? 0);
  }

  /** Room for rows of which so many have no slot yet, beside those that have one. */
  roomFor(newcomers: number, columns: number): SlotRoom {
    // A slot that only fills a call up gets a token behind its last, and so does one whose piece is odd.
    const longest = Math.max(columns, longestOf(this.#owners())) + 1;
    if (longest > this.columns) this.beforeGrowth(this.#grown(longest));
    return { slots: this.#owners().length + newcomers, columns: longest };
  }

  /** A call begins: buffers that are too small or too large for long are replaced beside it. */
  noteCall(): void {
    const owners = this.#owners();
    const longest = longestOf(owners);
    this.#most = Math.max(this.#most, Math.max(2, owners.length) * (longest + columnsAhead));
    this.#calls = (this.#calls + 1) % callsOfWindow;
    const slots = this.#now.owners.length;
    if (this.#calls === 0) {
      const isTooLarge = 4 * this.#most < slots * this.#now.columns;
      if (isTooLarge) this.#begin(Math.max(2, owners.length), longest + columnsAhead);
      this.#most = 0;
    }
    if (this.#next !== undefined) this.#move(tokensOfMove);
    else this.make(this.roomFor(0, longest + columnsAhead - 1));
  }

  /**
   * Goes on making room, if there is not enough.
   *
   * @param tokens of rows that are moved at once, at least.
   * @returns whether there is as much now.
   */
  make(room: SlotRoom, tokens = tokensOfMove): boolean {
    if (this.has(room)) return true;
    const { owners, columns } = this.#now;
    if (this.#next === undefined) {
      const grown = columns < room.columns ? this.#grown(room.columns) : columns;
      const wished = owners.length < room.slots ? 2 * owners.length : owners.length;
      const most = room.slots + Math.floor(spareTokens / grown);
      // A call has two at least.
      this.#begin(Math.max(2, room.slots, Math.min(wished, most)), grown);
    }
    this.#move(tokens);
    return this.has(room);
  }

  /** Gives a row a slot. There has to be a free one. */
  claim(cache: SlotCache): void {
    cache.slot = this.#now.owners.indexOf(undefined);
    this.#now.owners[cache.slot] = cache;
  }

  release(cache: SlotCache): void {
    if (cache.slot >= 0) this.#now.owners[cache.slot] = undefined;
    cache.slot = -1;
    cache.length = 0;
    const place = this.#next?.buffers.owners.indexOf(cache) ?? -1;
    if (place >= 0) this.#next!.buffers.owners[place] = undefined;
  }

  #owners(): SlotCache[] {
    return this.#now.owners.filter((owner) => owner !== undefined);
  }

  /** Whether there is room for these already. */
  has({ slots, columns }: SlotRoom): boolean {
    return slots <= this.#now.owners.length && columns <= this.#now.columns;
  }

  #begin(slots: number, columns: number): void {
    this.#next = { buffers: new SlotBuffers(this.#kind, slots, inBlocks(columns)), moved: new Map() };
  }

  /** How long slots are made that are to be so long at least. */
  #grown(columns: number): number {
    return inBlocks(Math.max(columns, 1.5 * this.#now.columns));
  }

  /** Moves at least so many tokens, and more if the last columns would be taken before all is moved. */
  #move(tokens: number): void {
    const { buffers, moved } = this.#next!;
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
        buffers.copyTokens(this.#now, owner.slot, slot, { first: owner.length, end: owner.held });
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
  return owners.reduce((most, { held, expected }) => Math.max(most, held, expected), 0);
}
