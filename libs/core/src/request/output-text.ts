import type { RequestEvent } from './request-event.ts';

/** An event that says what stands in a text. */
export type TextEvent = Extract<RequestEvent, { type: 'delta' | 'snapshot' | 'reset' }>;

/**
 * The text of an output after an event of it. What stands already is not taken twice, so entries may be read again, and nothing
 * is put behind a gap, where entries were lost.
 */
export function textAfter(text: string, event: TextEvent): string {
  switch (event.type) {
    case 'delta':
      return event.offset > text.length ? text : text + event.text.slice(text.length - event.offset);
    case 'snapshot':
      return text.slice(0, event.offset) + event.text;
    case 'reset':
      return text.slice(0, event.offset);
  }
}
