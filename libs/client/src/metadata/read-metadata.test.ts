/** Tests metadata in files of other programs. libs/imaging, which writes Darkroom's, tests those. */
import { expect, it } from 'vitest';
import { readMetadata } from './read-metadata.ts';

/** One pixel each, with parameters as written by Pillow 13 and piexif 1.1.3 for Stable Diffusion web UI. */
const files: Readonly<Record<string, string>> = {
  'png (tEXt)':
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAABJ3RFWHRwYXJhbWV0ZXJzAGEgImNhZukiIGF0IG5pZ2h0LCAKaW4gdGhlIHJhaW4KTmVnYXRpdmUgcHJvbXB0OiBibHVycnksIHBlb3BsZQphdCB0aGUgYmFjawpTdGVwczogMjAsIFNhbXBsZXI6IERQTSsrIDJNLCBTY2hlZHVsZSB0eXBlOiBLYXJyYXMsIENGRyBzY2FsZTogNy41LCBTZWVkOiAzMTQxNTkyNjUzLCBTaXplOiA1MTJ4NzY4LCBNb2RlbCBoYXNoOiA2Y2UwMTYxNjg5LCBNb2RlbDogdjEtNS1wcnVuZWQtZW1hb25seSwgTG9yYSBoYXNoZXM6ICJpbms6IDljMWEsIHdhc2g6IDc3ZjAiLCBWZXJzaW9uOiB2MS4xMC4xsqJykQAAAAxJREFUeJxjYGBgAAAABAAB9hc4VQAAAABJRU5ErkJggg==',
  'png (iTXt)':
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAABL2lUWHRwYXJhbWV0ZXJzAAAAAABhICJjYWbDqSIgYXQgbmlnaHQsIOKYlQppbiB0aGUgcmFpbgpOZWdhdGl2ZSBwcm9tcHQ6IGJsdXJyeSwgcGVvcGxlCmF0IHRoZSBiYWNrClN0ZXBzOiAyMCwgU2FtcGxlcjogRFBNKysgMk0sIFNjaGVkdWxlIHR5cGU6IEthcnJhcywgQ0ZHIHNjYWxlOiA3LjUsIFNlZWQ6IDMxNDE1OTI2NTMsIFNpemU6IDUxMng3NjgsIE1vZGVsIGhhc2g6IDZjZTAxNjE2ODksIE1vZGVsOiB2MS01LXBydW5lZC1lbWFvbmx5LCBMb3JhIGhhc2hlczogImluazogOWMxYSwgd2FzaDogNzdmMCIsIFZlcnNpb246IHYxLjEwLjEZd+3EAAAADElEQVR4nGNgYGAAAAAEAAH2FzhVAAAAAElFTkSuQmCC',
  jpeg: '/9j/4QJyRXhpZgAATU0AKgAAAAgAAYdpAAQAAAABAAAAGgAAAAAAAZKGAAcAAAJCAAAAKFVOSUNPREUAAGEAIAAiAGMAYQBmAOkAIgAgAGEAdAAgAG4AaQBnAGgAdAAsACAmFQAKAGkAbgAgAHQAaABlACAAcgBhAGkAbgAKAE4AZQBnAGEAdABpAHYAZQAgAHAAcgBvAG0AcAB0ADoAIABiAGwAdQByAHIAeQAsACAAcABlAG8AcABsAGUACgBhAHQAIAB0AGgAZQAgAGIAYQBjAGsACgBTAHQAZQBwAHMAOgAgADIAMAAsACAAUwBhAG0AcABsAGUAcgA6ACAARABQAE0AKwArACAAMgBNACwAIABTAGMAaABlAGQAdQBsAGUAIAB0AHkAcABlADoAIABLAGEAcgByAGEAcwAsACAAQwBGAEcAIABzAGMAYQBsAGUAOgAgADcALgA1ACwAIABTAGUAZQBkADoAIAAzADEANAAxADUAOQAyADYANQAzACwAIABTAGkAegBlADoAIAA1ADEAMgB4ADcANgA4ACwAIABNAG8AZABlAGwAIABoAGEAcwBoADoAIAA2AGMAZQAwADEANgAxADYAOAA5ACwAIABNAG8AZABlAGwAOgAgAHYAMQAtADUALQBwAHIAdQBuAGUAZAAtAGUAbQBhAG8AbgBsAHkALAAgAEwAbwByAGEAIABoAGEAcwBoAGUAcwA6ACAAIgBpAG4AawA6ACAAOQBjADEAYQAsACAAdwBhAHMAaAA6ACAANwA3AGYAMAAiACwAIABWAGUAcgBzAGkAbwBuADoAIAB2ADEALgAxADAALgAx/9sAQwAoHB4jHhkoIyEjLSsoMDxkQTw3Nzx7WF1JZJGAmZaPgIyKoLTmw6Cq2q2KjMj/y9ru9f///5vB////+v/m/f/4/9sAQwErLS08NTx2QUF2+KWMpfj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4/8AAEQgAAQABAwEiAAIRAQMRAf/EAB8AAAEFAQEBAQEBAAAAAAAAAAABAgMEBQYHCAkKC//EALUQAAIBAwMCBAMFBQQEAAABfQECAwAEEQUSITFBBhNRYQcicRQygZGhCCNCscEVUtHwJDNicoIJChYXGBkaJSYnKCkqNDU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6g4SFhoeIiYqSk5SVlpeYmZqio6Slpqeoqaqys7S1tre4ubrCw8TFxsfIycrS09TV1tfY2drh4uPk5ebn6Onq8fLz9PX29/j5+v/EAB8BAAMBAQEBAQEBAQEAAAAAAAABAgMEBQYHCAkKC//EALURAAIBAgQEAwQHBQQEAAECdwABAgMRBAUhMQYSQVEHYXETIjKBCBRCkaGxwQkjM1LwFWJy0QoWJDThJfEXGBkaJicoKSo1Njc4OTpDREVGR0hJSlNUVVZXWFlaY2RlZmdoaWpzdHV2d3h5eoKDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uLj5OXm5+jp6vLz9PX29/j5+v/aAAwDAQACEQMRAD8AxaKKKAP/2Q==',
  webp: 'UklGRqgCAABXRUJQVlA4WAoAAAAIAAAAAAAAAAAAVlA4IBgAAAAwAQCdASoBAAEAAUAmJaQAA3AA/v02aABFWElGagIAAE1NACoAAAAIAAGHaQAEAAAAAQAAABoAAAAAAAGShgAHAAACQgAAAChVTklDT0RFAABhACAAIgBjAGEAZgDpACIAIABhAHQAIABuAGkAZwBoAHQALAAgJhUACgBpAG4AIAB0AGgAZQAgAHIAYQBpAG4ACgBOAGUAZwBhAHQAaQB2AGUAIABwAHIAbwBtAHAAdAA6ACAAYgBsAHUAcgByAHkALAAgAHAAZQBvAHAAbABlAAoAYQB0ACAAdABoAGUAIABiAGEAYwBrAAoAUwB0AGUAcABzADoAIAAyADAALAAgAFMAYQBtAHAAbABlAHIAOgAgAEQAUABNACsAKwAgADIATQAsACAAUwBjAGgAZQBkAHUAbABlACAAdAB5AHAAZQA6ACAASwBhAHIAcgBhAHMALAAgAEMARgBHACAAcwBjAGEAbABlADoAIAA3AC4ANQAsACAAUwBlAGUAZAA6ACAAMwAxADQAMQA1ADkAMgA2ADUAMwAsACAAUwBpAHoAZQA6ACAANQAxADIAeAA3ADYAOAAsACAATQBvAGQAZQBsACAAaABhAHMAaAA6ACAANgBjAGUAMAAxADYAMQA2ADgAOQAsACAATQBvAGQAZQBsADoAIAB2ADEALQA1AC0AcAByAHUAbgBlAGQALQBlAG0AYQBvAG4AbAB5ACwAIABMAG8AcgBhACAAaABhAHMAaABlAHMAOgAgACIAaQBuAGsAOgAgADkAYwAxAGEALAAgAHcAYQBzAGgAOgAgADcANwBmADAAIgAsACAAVgBlAHIAcwBpAG8AbgA6ACAAdgAxAC4AMQAwAC4AMQ==',
};
const bytesOf = (name: string): Buffer => Buffer.from(files[name]!, 'base64');

it.each(Object.keys(files))('is read from %s', (name) => {
  expect(readMetadata(bytesOf(name))).toEqual({
    prompt: `a "café" at night, ${name === 'png (tEXt)' ? '' : '☕'}\nin the rain`,
    negative_prompt: 'blurry, people\nat the back',
    num_inference_steps: 20,
    guidance_scale: 7.5,
    seed: 3_141_592_653,
    size: '512x768',
    model: 'v1-5-pruned-emaonly',
    scheduler: 'dpmpp_2m_karras',
  });
});

it.each(Object.keys(files))('is absent from truncated and damaged versions of %s, without an error', (name) => {
  const file = bytesOf(name);
  const whole = readMetadata(file);
  for (let length = 0; length < file.length; length++) {
    const { prompt = '' } = readMetadata(file.subarray(0, length)) ?? {};
    expect(whole!.prompt).toContain(prompt);
  }
  for (let at = 0; at < file.length; at++) {
    const changed = Buffer.from(file);
    changed[at]! ^= 0xff;
    expect(() => readMetadata(changed)).not.toThrow();
  }
  expect(readMetadata(Buffer.concat([Buffer.from('x'), file]))).toBeUndefined();
});

/** Builds a PNG file with texts; its checksums are not valid, because no reader checks them. */
function pngOf(texts: Readonly<Record<string, string>>): Uint8Array {
  const chunks = Object.entries(texts).map(([keyword, text]) => {
    const data = Buffer.from(`${keyword}\0${text}`, 'latin1');
    const length = Buffer.alloc(4);
    length.writeUInt32BE(data.length);
    return Buffer.concat([length, Buffer.from('tEXt'), data, Buffer.alloc(4)]);
  });
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1A\n', 'latin1'), ...chunks]);
}

it("prefers Darkroom's JSON to other formats, and drops fields that a request cannot have", () => {
  const ours = {
    prompt: 'a fox',
    seed: 7,
    num_inference_steps: '12',
    size: 'large',
    loras: [{ id: 1 }],
    n: 4,
    __proto__: {},
  };
  const parameters = 'an owl\nSteps: 3';
  expect(readMetadata(pngOf({ parameters, darkroom: JSON.stringify(ours) }))).toEqual({ prompt: 'a fox', seed: 7 });
  for (const darkroom of ['{', 'null', '[]', '"a fox"', '{"workflow": {}}'])
    expect(readMetadata(pngOf({ parameters, darkroom }))).toEqual({
      prompt: 'an owl',
      negative_prompt: '',
      num_inference_steps: 3,
    });
});

it.each([
  ['', 'nothing'],
  ['a fox', 'a prompt alone'],
  ['{"3": {"class_type": "KSampler"}}', 'a graph of ComfyUI'],
])('is not found in %j: %s', (parameters) => {
  expect(readMetadata(pngOf({ parameters }))).toBeUndefined();
});

it.each([
  ['Steps: 4, Sampler: Euler a, Seed: 1', { num_inference_steps: 4, scheduler: 'euler_ancestral', seed: 1 }],
  ['Steps: 4, Sampler: Heun, Size: 1024, CFG scale: high, Seed: ', { num_inference_steps: 4 }],
  ['Steps: 4, Note: "Seed: 9, Size: 9x9", Seed: 2', { num_inference_steps: 4, seed: 2 }],
])('contains the known fields of %j', (line, fields) => {
  const read = { prompt: 'a fox', negative_prompt: '', ...fields };
  expect(readMetadata(pngOf({ parameters: `a fox\n${line}` }))).toEqual(read);
});
