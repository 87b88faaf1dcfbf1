import { partOf, setText } from './keyed-rows.ts';

/** `held`: an operator's doing. */
export type Tone = 'good' | 'busy' | 'held' | 'bad';

/** In words, and in a colour that says the same. */
export function showState(row: HTMLTableRowElement, tone: Tone, words: string): void {
  partOf(row, 'state', HTMLElement).dataset['tone'] = tone;
  setText(row, 'state', words);
}
