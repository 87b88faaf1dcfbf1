/** Tests the engine with the two text models of the repository. */
import { resolve } from 'node:path';
import { loadTextPipeline, readTextModelDirectory } from '@darkroom/language';
import { textAfter } from '@darkroom/core';
import { maskText, type TextInput } from '@darkroom/kinds';
import { describe, expect, it } from 'vitest';
import { ProcessExecutor } from '../process/process-executor.ts';
import { EventLog } from '../conformance/event-log.ts';
import { describeExecutor, type ExecutorSubject } from '../conformance/executor-conformance.ts';
import { InProcessExecutor } from './in-process-executor.ts';
import { describeRows, type RowSubject } from './row-conformance.ts';

const models = resolve(import.meta.dirname, '../../../../models');
const directories = { ar: resolve(models, 'emoji-writer'), bd: resolve(models, 'emoji-writer-diffusion') };
const { codec } = await readTextModelDirectory(directories.ar);

function input(text: string, changes: Partial<TextInput> = {}): TextInput {
  const prompt = codec.encode(codec.renderChat([{ role: 'user', content: text }]), { addSpecialTokens: false });
  const sampling = { temperature: 1, topP: 1, topK: 0, minP: 0, presencePenalty: 0, frequencyPenalty: 0 };
  const rest = { n: 1, maxTokens: 16, logitBias: {}, seed: 1, stop: [], ignoreEos: true };
  return { prompt, ...sampling, ...rest, ...changes };
}

const animalPrompt = input('an animal').prompt;
/** Slots that a short input of the suites takes. */
const shortSlots = animalPrompt.length + 16;

/** Decodes one token per step, as other texts do; a diffusion model would fill all confident positions at once. */
const oneByOne = { tokensPerCall: 1 };

/**
 * A grammar that sampling practically never completes: like the other inputs of the suites, it writes to `maxTokens`.
 */
const endless = { ignoreEos: false, constraint: { type: 'grammar', grammar: 'root ::= [^q] root | "q"' } as const };

function subjectOf(directory: string, changes: Partial<TextInput> = {}): ExecutorSubject & RowSubject {
  return {
    create: (onEvents) =>
      new InProcessExecutor({
        maxSlots: 3 * shortSlots,
        checkpointEvery: 2,
        onEvents,
        loadPipeline: () => loadTextPipeline({ directory, threads: 1 }),
      }),
    shortInput: ({ number, outputs }) =>
      input('an animal', {
        seed: number,
        n: outputs,
        temperature: 2,
        logitBias: { [300 + 37 * number]: 12 },
        ...changes,
      }),
    longInput: input('an animal', { maxTokens: 64, ...changes }),
    badInput: {
      input: input('an animal', { prompt: [] }),
      message: 'prompt: Too small: expected array to have >=1 items',
    },
    canBeKilled: false,
  };
}

describeExecutor('in process, with the writer', subjectOf(directories.ar));
describeRows('in process, with the writer', subjectOf(directories.ar));
describeExecutor('in process, with the writer and a grammar', subjectOf(directories.ar, endless));
describeRows('in process, with the writer and a grammar', subjectOf(directories.ar, endless));
describeExecutor('in process, with the writer by blocks', subjectOf(directories.bd, oneByOne));
describeRows('in process, with the writer by blocks', subjectOf(directories.bd, oneByOne));

it('follows a grammar in its own process', async () => {
  const log = new EventLog();
  const model = { directory: directories.ar, threads: 1 };
  const executor = new ProcessExecutor({ maxSlots: 400, onEvents: log.listener, model });
  await executor.start();
  const constraint = { type: 'grammar', grammar: 'root ::= "{" [0-9]{3} "}"' } as const;
  executor.submit([{ id: 'a', input: input('an animal', { constraint, ignoreEos: false }) }]);
  await log.end('a');
  expect(log.outputs('a').get(0)?.toString()).toMatch(/^\{\d{3}\}$/u);
  await executor.shutdown();
});

describe.each(Object.entries(directories))('an engine with %s', (mode, directory) => {
  const loadPipeline = () => loadTextPipeline({ directory, threads: 1 });
  async function open({ maxSlots = 4000, checkpointEvery = 0 } = {}) {
    const log = new EventLog();
    const executor = new InProcessExecutor({ maxSlots, checkpointEvery, onEvents: log.listener, loadPipeline });
    await executor.start();
    const textOf = (id: string, index = 0) => log.outputs(id).get(index)?.toString();
    return { log, executor, textOf };
  }
  const prompts = ['an animal', 'a long wish about '.repeat(6), 'hello', 'something cold'];
  const requests = Array.from({ length: 16 }, (_, at) => ({
    id: `r${at}`,
    input: input(prompts[at % 4]!, {
      seed: at,
      maxTokens: 1 + ((7 * at) % 30),
      n: 1 + (at % 2),
      ignoreEos: at % 3 > 0,
    }),
  }));

  it('gives each text the same bytes as alone while others join, wait and leave', async () => {
    const alone = await open();
    for (const request of requests) {
      alone.executor.submit([request]);
      await alone.log.end(request.id);
    }
    const together = await open({ maxSlots: 400 });
    for (const [at, request] of requests.entries()) {
      together.executor.submit([request]);
      // Submit the next request when an earlier one has ended.
      if (at >= 8) await together.log.end(requests[at - 8]!.id);
    }
    await Promise.all(requests.map(({ id }) => together.log.end(id)));
    for (const { id, input } of requests)
      for (let index = 0; index < input.n; index++) expect(together.textOf(id, index)).toBe(alone.textOf(id, index));
    const stats = together.log.of('stats');
    expect(Math.max(...stats.map(({ rows }) => rows))).toBeGreaterThan(4);
    expect(Math.max(...stats.map(({ tableSlots }) => tableSlots))).toBeLessThanOrEqual(400);
    expect(stats.some(({ waitingRequests }) => waitingRequests > 0)).toBe(true);
    await Promise.all([alone.executor.shutdown(), together.executor.shutdown()]);
  });

  it('streams a text as it is written', async () => {
    const { log, executor, textOf } = await open();
    executor.submit([
      { id: 'a', input: input('something sweet for a birthday party', { temperature: 0, ignoreEos: false }) },
    ]);
    await log.end('a');
    const textEvents = log.events.flatMap((event) =>
      event.type === 'delta' || event.type === 'snapshot' ? [event] : [],
    );
    expect(textEvents.length).toBeGreaterThan(2);
    expect(textEvents.reduce(textAfter, '')).toBe(textOf('a'));
    expect(textOf('a')).toBe('a birthday cake on a pink background');
    expect(textEvents.some(({ text }) => text.includes(maskText))).toBe(mode === 'bd');
    expect(log.of('output')[0]!.output.facts).toMatchObject({ finish_reason: 'stop' });
    await executor.shutdown();
  });

  it('resumes from every checkpoint to the same bytes', async () => {
    const { log, executor, textOf } = await open({ checkpointEvery: 1 });
    const request = { id: 'whole', input: input('hello', { maxTokens: 32 }) };
    executor.submit([request]);
    await log.end('whole');
    const checkpoints = log.of('checkpoint').map(({ checkpoint }) => checkpoint);
    expect(checkpoints.length).toBeGreaterThan(8);
    for (const [at, checkpoint] of checkpoints.entries()) {
      executor.submit([{ ...request, id: `${at}`, checkpoints: new Map([[0, checkpoint]]) }]);
      await log.end(`${at}`);
      expect(textOf(`${at}`)).toBe(textOf('whole'));
    }
    await executor.shutdown();
  });
});
