import { expect, it } from 'vitest';
import { curlLine } from './curl-line.ts';

const request = { prompt: 'a cat', seed: 7, preview: { every: 2 } };

it('requests the same images as the page, without fields that only the page needs', () => {
  expect(curlLine({ baseUrl: 'http://host:1/lab/', hasKey: false }, request)).toBe(
    `curl -s 'http://host:1/lab/v1/predict' -H 'content-type: application/json' -d '{"prompt":"a cat","seed":7}'`,
  );
});

it('quotes for a shell', () => {
  const line = curlLine({ baseUrl: 'http://h/', hasKey: false }, { prompt: `it's "$HOME" \`ls\`\n` });
  expect(line).toContain(String.raw`-d '{"prompt":"it'\''s \"$HOME\" ${'`ls`'}\n"}'`);
});

it('reads the key from the environment, so that the line does not contain it', () => {
  expect(curlLine({ baseUrl: 'http://h/', hasKey: true }, request)).toContain(
    '-H "authorization: Bearer $DARKROOM_API_KEY"',
  );
});

it('reads input images from files, and sends the other fields as a form', () => {
  const image = '/v1/predict/tiny-1/inputs/image';
  const begun = { ...request, prompt: '@home; it’s', strength: 0.5, loras: [{ id: 'pixels' }], image };
  const line = `curl -s 'http://h/v1/predict' --form-string 'prompt=@home; it’s' --form-string 'seed=7' --form-string 'strength=0.5'`;
  expect(curlLine({ baseUrl: 'http://h/', hasKey: false }, begun)).toBe(
    `${line} --form-string 'loras=[{"id":"pixels"}]' -F image=@image.png`,
  );
  expect(curlLine({ baseUrl: 'http://h/', hasKey: true }, { ...begun, mask: image })).toMatch(
    / -H "authorization: Bearer \$DARKROOM_API_KEY" .* -F image=@image.png -F mask=@mask.png$/,
  );
});
