/** Tests engines in Python that return invalid reports, and what the engine's process passes to its children. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { EventLog } from '../conformance/event-log.ts';
import { PythonExecutor } from './python-executor.ts';

/** Shows the fault that the prompt names, in a step of two rows: a row that steps alone has none. */
const source = `
import os
import signal
import subprocess
import sys
from darkroom_engine import Engine, Report, RunEngine, rpc

class Unfit(Exception):
    pass

faults = {
    "steps_left": lambda: Report(step=1, steps_left=float("nan")),
    "a negative steps_left": lambda: Report(step=1, steps_left=-1),
    "done": lambda: Report(step=1, done=1),
    "a step": lambda: Report(step=float("nan")),
    "a preview": lambda: Report(step=1, preview=b"123"),
    "no report": lambda: None,
    "a text as error": lambda: Report(error="out of paper"),
    "a shape": lambda: Report(step=1),
    "a long shape": lambda: Report(step=1),
}

class Row:
    def __init__(self, request):
        self.request, self.step, self.shape = request, 0, ""

class Draughtsman(Engine):
    card = {"kind": "image", "steps": {"min": 1, "max": 9, "default": 1}}
    slots = 2

    def __init__(self):
        self.released = []

    def create_row(self, request):
        row = Row(request)
        if request.input["prompt"] == "a shape at the start":
            row.shape = 5
        return row

    def step(self, rows):
        reports = [self.draw(row) for row in rows]
        prompts = [row.request.input["prompt"] for row in rows]
        if len(rows) == 2:
            for at, (row, prompt) in enumerate(zip(rows, prompts)):
                if prompt in faults:
                    reports[at] = faults[prompt]()
                    row.shape = {"a shape": None, "a long shape": "x" * 201}.get(prompt, "")
            if "too few" in prompts:
                return reports[:1]
            if "none" in prompts:
                return None
        return reports

    def draw(self, row):
        row.step += 1
        left = row.request.input["numInferenceSteps"] - row.step
        return Report(step=row.step, done=left == 0, steps_left=left)

    def finish(self, row):
        return bytes(3 * row.request.input["width"] * row.request.input["height"])

    def shape(self, row):
        if row.shape is None:
            raise Unfit("has no shape")
        return row.shape

    def release(self, row):
        self.released.append(row.request.input["prompt"])

    @rpc
    def releases(self):
        return self.released

    @rpc
    def signals(self):
        for each in ("SIGINT", "SIGTERM"):
            os.kill(os.getpid(), getattr(signal, each))
        return [end for each in (signal.SIGINT, signal.SIGTERM) for end in (end_of_fork(each), end_of_program(each))]

    @rpc
    def exit(self, file):
        sys.stderr = open(file, "w")
        sys.exit("out of ink")

def end_of_fork(number):
    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), number)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0

def end_of_program(number):
    return -subprocess.run(["sh", "-c", f"kill -{int(number)} $$"]).returncode

class Forgetful(RunEngine):
    card = {"kind": "image", "steps": {"min": 1, "max": 9, "default": 1}}
    slots = 2

    def __init__(self):
        self.runs = []

    def run(self, requests):
        self.runs.append(len(requests))
        for request in requests:
            request.report(step=1)

    @rpc
    def sizes_of_runs(self):
        return self.runs

create_engine = lambda model: Forgetful() if model == "forgetful" else Draughtsman()
`;

const image = (prompt: string) => ({
  id: prompt,
  input: { prompt, width: 16, height: 16, n: 1, numInferenceSteps: 3, seed: 1, previewEvery: 1 },
});

async function started(model: string) {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-reports-'));
  const module = join(folder, 'draughtsman.py');
  writeFileSync(module, source);
  const log = new EventLog();
  const options = { module, model, python: 'python3', checkEveryMs: 600_000 };
  const executor = new PythonExecutor({ ...options, onEvents: log.listener });
  onTestFinished(async () => {
    await executor.shutdown();
    rmSync(folder, { recursive: true });
  });
  await executor.start();
  return { log, executor, folder };
}

const lost = (message: RegExp) => ({
  type: 'request-lost',
  message: expect.stringMatching(message) as string,
});

it.each([
  ['steps_left', /TypeError: Report.steps_left is nan, expected a whole number from 0, or None/],
  ['a negative steps_left', /TypeError: Report.steps_left is -1, expected a whole number from 0/],
  ['done', /TypeError: Report.done is 1, expected True or False/],
  ['a step', /ValueError: values.0.step is nan, expected a finite number/],
  ['a preview', /TypeError: Report.preview has shape \(\), expected \(height, width, 3\)/],
  ['no report', /TypeError: step returned a NoneType for a row, expected a Report/],
  ['a text as error', /TypeError: Report.error is 'out of paper', expected an exception/],
  ['a shape', /raised Unfit: has no shape/],
  ['a long shape', /shape returned 'x+', expected a str of up to 200 characters/],
])('loses the row of an invalid report, and steps no row twice: %s', async (fault, message) => {
  const { log, executor } = await started('draughtsman');
  executor.submit([image(fault), image('another')]);
  expect(await log.end(fault)).toMatchObject(lost(message));
  expect(await log.end('another')).toMatchObject({ type: 'request-done' });
  expect(log.of('progress', 'another').map(({ done }) => done)).toEqual([1, 2, 3]);
  expect(log.of('engine-lost')).toEqual([]);
});

it.each([
  ['too few', /ValueError: step returned 1 reports, expected a list of 2 reports, one for each row/],
  ['none', /ValueError: step returned a NoneType, expected a list of 2 reports/],
])('loses the rows of a step with a wrong number of reports: %s', async (fault, message) => {
  const { log, executor } = await started('draughtsman');
  executor.submit([image(fault), image('another')]);
  expect(await log.end(fault)).toMatchObject(lost(message));
  expect(await log.end('another')).toMatchObject(lost(message));
});

it('releases a row whose shape is invalid when it is created', async () => {
  const { log, executor } = await started('draughtsman');
  executor.submit([image('a shape at the start')]);
  expect(await log.end('a shape at the start')).toMatchObject(lost(/shape returned 5, expected a str/));
  expect(await executor.rpc('releases', {})).toEqual(['a shape at the start']);
});

it('does not repeat a run that has reported and returns nothing', async () => {
  const { log, executor } = await started('forgetful');
  executor.submit([image('one'), image('two')]);
  for (const id of ['one', 'two']) expect(await log.end(id)).toMatchObject(lost(/TypeError: .*NoneType/));
  expect(await executor.rpc('sizes_of_runs', {})).toEqual([2]);
});

it('ignores SIGINT and SIGTERM; processes that it forks or executes do not', async () => {
  const { executor } = await started('draughtsman');
  expect(await executor.rpc('signals', {})).toEqual([2, 2, 15, 15]);
});

it('leaves the traceback of an engine that exits', async () => {
  const { executor, log, folder } = await started('draughtsman');
  const file = join(folder, 'stderr');
  await expect(executor.rpc('exit', { file })).rejects.toThrow('exited with code 1');
  await log.next(({ type }) => type === 'engine-lost');
  expect(readFileSync(file, 'utf8')).toMatch(/^Traceback[^]*SystemExit: out of ink/);
});
