/** Tests the hooks of engines in Python, which may change a request and an output. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { EventLog } from '../conformance/event-log.ts';
import { PythonExecutor } from './python-executor.ts';

const source = `
from dataclasses import replace
from darkroom_engine import Engine, Report

class Stripe(Engine):
    card = {"kind": "image", "steps": {"min": 1, "max": 9, "default": 1}}

    def before(self, request):
        if "loud" in request.input["prompt"]:
            return replace(request, seed=request.seed + 100)
        return request

    def after(self, request, output):
        return bytes(255 - value for value in output) if "negative" in request.input["prompt"] else output

    def create_row(self, request):
        return request

    def step(self, rows):
        return [Report(step=1, done=True, steps_left=0) for _ in rows]

    def finish(self, request):
        return bytes([request.seed]) * 3 * request.input["width"] * request.input["height"]

create_engine = lambda model: Stripe()
`;

it('before changes the request that a row is created from, and after the output', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-hooks-'));
  const module = join(folder, 'stripe.py');
  writeFileSync(module, source);
  const log = new EventLog();
  const executor = new PythonExecutor({
    module,
    model: 'stripe',
    python: 'python3',
    checkEveryMs: 600_000,
    onEvents: log.listener,
  });
  onTestFinished(async () => {
    await executor.shutdown();
    rmSync(folder, { recursive: true });
  });
  await executor.start();
  const prompts = ['plain', 'loud', 'negative', 'loud negative'];
  const size = { width: 4, height: 4, n: 1, numInferenceSteps: 1, seed: 7, previewEvery: 0 };
  executor.submit(prompts.map((prompt) => ({ id: prompt, input: { prompt, ...size } })));
  for (const prompt of prompts) expect(await log.end(prompt)).toMatchObject({ type: 'request-done' });
  expect(prompts.map((prompt) => log.outputs(prompt).get(0)?.[0])).toEqual([7, 107, 248, 148]);
});
