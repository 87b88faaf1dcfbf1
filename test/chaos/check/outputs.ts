/** Whether the same is made whenever the same is asked for. */
import type { Story } from './stories.ts';

export function outputsThatDiffer(stories: readonly Story[]): { checked: number; broken: string[] } {
  const known = new Map<string, string>();
  const broken: string[] = [];
  let checked = 0;
  for (const { submit, outputs, requests } of stories) {
    for (const { index, digest, text } of outputs) {
      checked += 1;
      const name = `${submit.same ?? [...requests].join()} ${index}`;
      if (digest !== (known.get(name) ?? digest)) broken.push(`${[...requests].join()}: output ${index}`);
      known.set(name, digest);
      // Others say in each word which run wrote it and where.
      if (submit.same === undefined && text !== undefined && !isOfOneRun(text, Number(submit.body['max_tokens'])))
        broken.push(`${[...requests].join()}: not the whole text of one run`);
    }
  }
  return { checked, broken };
}

function isOfOneRun(text: string, words: number): boolean {
  const [run = ''] = text.split(':');
  return text === Array.from({ length: words }, (_value, at) => `${run}:${at} `).join('');
}
