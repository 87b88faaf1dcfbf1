// Generated from libs/core by `npm run generate`. Do not edit.
/** A change of a text. `offset` counts UTF-16 units, as strings of JavaScript do. */
export type TextChange =
  | { readonly type: 'delta' | 'snapshot'; readonly offset: number; readonly text: string }
  | { readonly type: 'reset'; readonly offset: number };

/**
 * Returns the text after a change: `delta` appends, `snapshot` replaces the text from its offset on, `reset` cuts it
 * there. A repeated change has no effect; a delta behind a gap, where changes were lost, is ignored.
 *
 * @example
 *   let text = '';
 *   text = textAfter(text, { type: 'delta', offset: 0, text: 'a red fox' }); // a red fox
 *   text = textAfter(text, { type: 'snapshot', offset: 2, text: 'blue' }); // a blue
 */
export function textAfter(text: string, change: TextChange): string {
  switch (change.type) {
    case 'delta':
      return change.offset > text.length ? text : text + change.text.slice(text.length - change.offset);
    case 'snapshot':
      return text.slice(0, change.offset) + change.text;
    case 'reset':
      return text.slice(0, change.offset);
  }
}
