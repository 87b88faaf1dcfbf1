import { expect, it } from 'vitest';
import { curlLine } from './curl-line.ts';

const request = { prompt: 'a cat', seed: 7, preview: { every: 2 } };

it('asks for the same pictures where the page asked, without what only the page needs', () => {
  expect(curlLine({ baseUrl: 'http://host:1/lab/', hasKey: false }, request)).toBe(
    `curl -s 'http://host:1/lab/v1/predict' -H 'content-type: application/json' -d '{"prompt":"a cat","seed":7}'`,
  );
});

it('quotes for a shell', () => {
  const line = curlLine({ baseUrl: 'http://h/', hasKey: false }, { prompt: `it's "$HOME" \`ls\`\n` });
  expect(line).toContain(String.raw`-d '{"prompt":"it'\''s \"$HOME\" ${'`ls`'}\n"}'`);
});

it('takes the key from the environment, so that none is shown to others', () => {
  expect(curlLine({ baseUrl: 'http://h/', hasKey: true }, request)).toContain(
    '-H "authorization: Bearer $DARKROOM_API_KEY"',
  );
});
