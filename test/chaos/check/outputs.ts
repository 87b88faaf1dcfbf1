/** Checks determinism: the same body produces the same output in all requests. */
import type { Story } from './stories.ts';

export function findDifferingOutputs(stories: readonly Story[]): { checked: number; broken: string[] } {
  const known = new Map<string, string>();
  const broken: string[] = [];
  let checked = 0;
  for (const { submit, outputs, requests } of stories) {
    for (const { index, digest, text } of outputs) {
      checked += 1;
      const name = `${submit.same ?? [...requests].join()} ${index}`;
      if (digest !== (known.get(name) ?? digest)) broken.push(`${[...requests].join()}: output ${index}`);
      known.set(name, digest);
      // Texts of the fake upstream and module are not reproducible, but each word names its generation and position.
      if (submit.same === undefined && text !== undefined && !isOfOneRun(text, Number(submit.body['max_tokens'])))
        broken.push(`${[...requests].join()}: not the complete text of one generation`);
    }
  }
  return { checked, broken };
}

function isOfOneRun(text: string, words: number): boolean {
  const [run = ''] = text.split(':');
  return text === Array.from({ length: words }, (_value, at) => `${run}:${at} `).join('');
}
