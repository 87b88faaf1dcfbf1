/** The text of a request as a client builds it from the event stream, with counters of errors. */
import { stream } from './client.ts';

export interface GrownText {
  text: string;
  /** Terminal events: exactly one, unless something is wrong. */
  ends: string[];
  /** Number of reset events, which drop the text from an offset on. */
  resets: number;
  /** Deltas that do not start at the end of the text: earlier ones were lost or repeated. */
  misplaced: number;
}

const terminal = ['succeeded', 'failed', 'canceled', 'expired'];

/** @param onText gets the number of characters of each event. */
export async function growText(
  url: string,
  id: string,
  onText: (characters: number) => void = () => {},
): Promise<GrownText> {
  const grown: GrownText = { text: '', ends: [], resets: 0, misplaced: 0 };
  await stream(url, id, {
    until: ({ event = '', data }) => {
      if (data === '[DONE]') return true;
      if (terminal.includes(event)) grown.ends.push(event);
      if (event !== 'delta' && event !== 'snapshot' && event !== 'reset') return false;
      const { offset, text = '' } = JSON.parse(data) as { offset: number; text?: string };
      if (event === 'delta' && offset !== grown.text.length) grown.misplaced += 1;
      if (event === 'reset') grown.resets += 1;
      grown.text = grown.text.slice(0, offset) + text;
      onText(text.length);
      return false;
    },
  });
  return grown;
}
