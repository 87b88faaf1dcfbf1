/** Input images through OpenAI's unmodified Python SDK: on an API with a played worker, and on a real system. */
import type { ImageInput } from '@darkroom/kinds';
import { readAttachments, readRequest } from '@darkroom/store';
import { beforeAll, expect, it, vi } from 'vitest';
import { runNext, startWorker } from '../../apps/api/src/testing/fake-worker.ts';
import { storedIds } from '../../apps/api/src/testing/generate.ts';
import { listen } from '../../apps/api/src/testing/listen.ts';
import { dataUrl, halfClear, openImageApi, plain } from '../../apps/api/src/testing/images.ts';
import { openSystem, longWorkerTtl } from '../e2e/system.ts';
import { installOpenaiPython, runOpenaiPython } from './openai-python.ts';

beforeAll(installOpenaiPython, 600_000);

const bytesOf = async (encoded: Promise<string>): Promise<string> => (await encoded).split(',')[1]!;

it('edits, streams and varies images, and reports a file that is not an image', async () => {
  const test = await openImageApi();
  await startWorker(test.store);
  const { url } = await listen(test);
  const program = `
import base64, json
from openai import OpenAI, BadRequestError
client = OpenAI(max_retries=0)
image = ("image.png", base64.b64decode("${await bytesOf(dataUrl(plain(64, 64)))}"), "image/png")
mask = ("mask.png", base64.b64decode("${await bytesOf(dataUrl(halfClear(64, 64)))}"), "image/png")
edited = client.images.edit(image=image, mask=mask, prompt="a fox", n=2)
print(json.dumps([base64.b64decode(each.b64_json).decode() for each in edited.data]))
with client.images.edit(image=[image], prompt="a fox", stream=True, partial_images=1) as stream:
    print(json.dumps([event.type for event in stream]))
print(json.dumps(len(client.images.create_variation(image=image, response_format="b64_json").data)))
try:
    client.images.edit(image=("x.png", b"hello", "image/png"), prompt="a fox")
except BadRequestError as error:
    print(json.dumps([error.param, error.body["message"]]))
`;
  const printing = runOpenaiPython(program, url);
  for (let count = 0; count < 3; count++) {
    const run = await vi.waitFor(() => runNext(test.store), { timeout: 30_000 });
    await run.progress(2, Buffer.from('preview'));
    for (let index = 0; index < run.count; index++) await run.output(index, Buffer.from(`image ${index}`));
    await run.finish();
  }
  const lines = (await printing).trim().split('\n');
  expect(lines.map((line): unknown => JSON.parse(line))).toEqual([
    ['image 0', 'image 1'],
    ['image_edit.partial_image', 'image_edit.completed'],
    1,
    ['image', 'image is not an image (5 bytes), expected a PNG, JPEG or WebP image'],
  ]);
  const inputs = await Promise.all(
    (await storedIds(test.store)).map(async (id) => {
      const found = await readRequest(test.store, id);
      expect((await readAttachments(test.store, id)).has('image')).toBe(true);
      return found.status === 'found' ? (found.request.input as ImageInput).strength : undefined;
    }),
  );
  expect(new Set(inputs)).toEqual(new Set([0.8, 1]));
});

it('edits and varies an image deterministically with emoji-sd', async () => {
  const { url } = await openSystem({ environment: longWorkerTtl });
  const program = `
import base64, json
from openai import OpenAI
client = OpenAI(max_retries=0)
ask = dict(model="emoji-sd", extra_body=dict(seed=7, num_inference_steps=8))
bytes_of = lambda answer: base64.b64decode(answer.data[0].b64_json)
apple = bytes_of(client.images.generate(prompt="a red apple on a white background", **ask))
image = ("apple.png", apple, "image/png")
edit = lambda: bytes_of(client.images.edit(image=image, prompt="a strawberry on a white background", **ask))
edited = edit()
varied = bytes_of(client.images.create_variation(image=image, response_format="b64_json"))
print(json.dumps([[each[1:4].decode() for each in (apple, edited, varied)], edited == edit(), edited == apple]))
`;
  expect(JSON.parse(await runOpenaiPython(program, url))).toEqual([['PNG', 'PNG', 'PNG'], true, false]);
});
