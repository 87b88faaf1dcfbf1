/** The text of a request as a reader of its events grows it, for whom nothing may come twice. */
import { stream } from './client.ts';

export interface GrownText {
  text: string;
  /** What it ended with: one of them, unless something is wrong. */
  ends: string[];
  /** How often it was told that another text stands from somewhere on. */
  resets: number;
  /** Pieces that did not begin where the text ended that was there: parts that were lost, or came twice. */
  misplaced: number;
}

const terminal = ['succeeded', 'failed', 'canceled', 'expired'];

/** @param told gets how many characters came with each piece. */
export async function growText(
  url: string,
  id: string,
  told: (characters: number) => void = () => {},
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
      told(text.length);
      return false;
    },
  });
  return grown;
}
