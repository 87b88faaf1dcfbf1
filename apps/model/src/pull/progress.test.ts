import { expect, it } from 'vitest';
import { DownloadProgress } from './progress.ts';

function create(isTerminal: boolean) {
  const written: string[] = [];
  let nowMs = 0;
  const progress = new DownloadProgress({ isTerminal, write: (text) => written.push(text), nowMs: () => nowMs });
  return { progress, written, at: (ms: number) => (nowMs = ms) };
}

it('draws progress, speed and remaining time', () => {
  const { progress, written, at } = create(true);
  progress.expect(3_000_000_000);
  progress.file('unet/model.onnx', 2_000_000_000);
  // Bytes of an earlier run.
  progress.add(1_000_000_000, false);
  at(1000);
  progress.add(50_000_000, true);
  expect(written).toEqual([
    '\r\u001b[K████████░░░░░░░░░░░░░░░░  33 %  1.0 GB of 3.0 GB  unet/model.onnx',
    '\r\u001b[K████████░░░░░░░░░░░░░░░░  35 %  1.1 GB of 3.0 GB  50.0 MB/s  0:39 left  unet/model.onnx',
  ]);
});

it('limits redraws, keeps messages readable, and ends the line once', () => {
  const { progress, written } = create(true);
  progress.expect(10);
  for (let count = 0; count < 10; count++) progress.add(1, true);
  progress.report('the connection broke');
  progress.end();
  progress.end();
  expect(written.map((text) => text.replace(/[█░]+/, 'bar').trim())).toEqual([
    expect.stringContaining('10 %'),
    '\u001b[Kthe connection broke',
    expect.stringContaining('100 %'),
    expect.stringContaining('100 %'),
    '',
  ]);
});

it('writes a line per file when the output is not a terminal', () => {
  const { progress, written } = create(false);
  progress.expect(3000);
  progress.file('model_index.json', 605);
  progress.add(605, true);
  progress.file('unet/model.onnx', 2395);
  progress.add(2395, true);
  progress.end();
  expect(written).toEqual(['model_index.json (605 bytes)\n', 'unet/model.onnx (2.4 kB)\n']);
});
