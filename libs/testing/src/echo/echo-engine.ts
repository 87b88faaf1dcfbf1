/** The engine half of the kind `echo`: writes the prompt, one character per step. */
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { NonEmpty, Pipeline, PipelineRow, RowCheckpoint, RowOutput } from '@darkroom/core';
import type { RowRequest, StepReport } from '@darkroom/core';
import type { EngineKind } from '@darkroom/executor';
import { echo, type EchoCard, echoCard, type EchoInput } from './echo-kind.ts';

const slotCharacters = 10;

interface EchoConfig {
  model_type: string;
  max_characters: number;
}

function readConfig(directory: string): Promise<EchoConfig> {
  return readFile(join(directory, 'config.json'), 'utf8').then((json) => JSON.parse(json) as EchoConfig);
}

async function readCard(directory: string, id = basename(directory)): Promise<EchoCard> {
  const { max_characters: maxCharacters } = await readConfig(directory);
  return { ...echoCard, id, maxCharacters };
}

export const echoEngine: EngineKind = {
  id: echo.id,
  memory: { processBytes: 50e6, weightFactor: 1 },
  detect: (directory) =>
    readConfig(directory).then(
      ({ model_type: type }) => type === 'echo',
      () => false,
    ),
  describe: async ({ directory, id }) => ({
    card: await readCard(directory, id),
    files: ['weights.dat'],
    weightBytes: 0,
    slotBytes: slotCharacters,
    notes: [{ level: 'info', message: 'echo model found', fields: {} }],
  }),
  capacity({ card }, { batchMaxSize }) {
    return { slots: batchMaxSize * Math.ceil((card as EchoCard).maxCharacters / slotCharacters) };
  },
  load: async ({ directory, id }) => new EchoPipeline(await readCard(directory, id)),
  encode: ({ data }) => Promise.resolve({ data, contentType: 'text/plain; charset=utf-8' }),
};

interface EchoRow extends PipelineRow {
  readonly prompt: string;
  done: number;
}

class EchoPipeline implements Pipeline<EchoRow> {
  readonly components = [];
  readonly card: EchoCard;

  constructor(card: EchoCard) {
    this.card = card;
  }

  createRows({ input, checkpoints }: RowRequest): Promise<EchoRow[]> {
    const { prompt = '' } = input as Partial<EchoInput>;
    const row = {
      index: 0,
      shapeKey: 'echo',
      slots: Math.ceil(prompt.length / slotCharacters),
      prompt,
      done: checkpoints?.get(0)?.done ?? 0,
      get isDone(): boolean {
        return this.done === prompt.length;
      },
    };
    return Promise.resolve([row]);
  }

  step(rows: NonEmpty<EchoRow>): Promise<StepReport<EchoRow>> {
    const events = new Map(
      rows.map((row) => {
        const text = row.prompt[row.done]!;
        row.done += 1;
        const { done } = row;
        return [
          row,
          [
            { type: 'progress', done, total: row.prompt.length },
            { type: 'delta', offset: done - 1, text, done },
          ],
        ] as const;
      }),
    );
    return Promise.resolve({ modelRows: rows.length, events, failures: new Map() });
  }

  finish({ prompt }: EchoRow): Promise<RowOutput> {
    return Promise.resolve({ data: new TextEncoder().encode(prompt), facts: { finishReason: prompt.length } });
  }

  checkpoint({ done }: EchoRow): RowCheckpoint {
    return { done, data: new Uint8Array() };
  }

  settle = (): Promise<void> => Promise.resolve();
  release = (): void => {};
  dispose = (): Promise<void> => Promise.resolve();
}
