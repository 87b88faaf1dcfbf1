import { describeGraphFile } from '@darkroom/diffusion/model-files';
import type { ImageTokens, TextCard } from '@darkroom/kinds';
import { dtypeOfTextGraph, readTextModelDirectory, type TextModelDirectory } from '@darkroom/language/model-files';
import { sizeText } from '../command/number-text.ts';
import { table } from '../command/table.ts';
import type { CheckModelOptions } from './check-options.ts';
import { componentTable, measurementTable } from './check-tables.ts';
import { runTextCheck } from './run-check.ts';
import type { TextCheckResult } from './text-check-process.ts';

/** Does what `checkModel` does for a text model: writes a sentence and measures the speed. */
export async function checkTextModel({ model, signal, write }: CheckModelOptions): Promise<void> {
  const files = await readTextModelDirectory(model.directory, model);
  write(`${table(factsOf(files))}\n\n${graphTable(files)}\n\n`);
  const result = await runTextCheck({ model }, signal);
  const measurements = measurementTable([
    ['loading', result.load],
    [`reading ${result.facts.prompt_tokens} tokens`, result.read],
    [`writing ${result.facts.completion_tokens} tokens`, result.write],
  ]);
  write(`${measurements}\n\n${componentTable(result.components)}\n\n${table(findingsOf(files.card, result))}\n\nok\n`);
}

function factsOf({ card, config }: TextModelDirectory): string[][] {
  const { defaults, block, images, maxModelTokens, hasChatTemplate, hasTools } = card;
  const template = hasTools ? 'yes, with tools' : 'yes';
  return [
    ['id', card.id],
    ['kind', 'text'],
    ['family', config.type],
    ['mode', block === undefined ? card.mode : `${card.mode}, ${block.size} tokens in a block`],
    ['context', `${maxModelTokens} tokens, prompt and text together`],
    ['vocabulary', `${card.vocabularySize} tokens`],
    ...(images === undefined ? [] : [['images', imageWords(images)]]),
    ['chat template', hasChatTemplate ? template : 'no: it takes prompts, and no messages'],
    ['by default', `${defaults.maxTokens} tokens, temperature ${defaults.temperature}`],
  ];
}

function imageWords({ minImages, maxImages, perTile, tiling }: ImageTokens): string {
  const count = `${minImages} to ${maxImages} in a request`;
  return `${count}; ${perTile} tokens ${tiling === undefined ? 'each' : 'per tile'}`;
}

function graphTable({ path, graph, imageGraphs }: TextModelDirectory): string {
  const rows = [graph, ...Object.values(imageGraphs ?? {})].map((file) => {
    const { files, bytes } = describeGraphFile(path, file);
    return [files.join(', '), dtypeOfTextGraph(file), sizeText(bytes)];
  });
  return table([['file', 'dtype', 'size'], ...rows]);
}

function findingsOf({ mode }: TextCard, { deterministic, text, facts, write }: TextCheckResult): string[][] {
  // In autoregressive mode the first token comes with reading the prompt.
  const tokens = facts.completion_tokens - (mode === 'autoregressive' ? 1 : 0);
  return [
    ['wrote', JSON.stringify(text)],
    [
      'speed',
      tokens > 0 ? `${((tokens / write.ms) * 1000).toFixed(1)} tokens/s, a row alone` : 'unknown after one token',
    ],
    [
      'deterministic',
      deterministic.is ? 'yes: a row has the same bytes whatever shares its batch' : `no: ${deterministic.reason}`,
    ],
  ];
}
