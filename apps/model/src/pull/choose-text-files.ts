import { modelDtypes } from '@darkroom/core';
import { readTextModelConfig, textDtypeFileNames } from '@darkroom/language/model-files';
import { CommandError } from '../command/command-error.ts';
import { download } from '../hub/download.ts';
import { type ChooseOptions, type ChosenFiles, isAboutTheModel, likelyWeightsOf } from './chosen-files.ts';

const configs = ['config.json', 'generation_config.json'];
const tokenizers = ['tokenizer.json', 'tokenizer_config.json', 'special_tokens_map.json', 'chat_template.jinja'];

/**
 * Chooses one graph and the files it needs. Downloads config.json first: an unsupported family is not worth a download.
 *
 * @throws CommandError with the alternatives, if there is no graph in the requested dtype.
 * @throws DarkroomError `model_unsupported` if config.json is not one of a supported model.
 */
export async function chooseTextFiles({ hub, files, directory, dtypes }: ChooseOptions): Promise<ChosenFiles> {
  const { repo } = hub;
  const [part] = Object.keys(dtypes.parts);
  if (part !== undefined)
    throw new CommandError(`--dtype names ${part}, expected one dtype: a text model is one graph`);
  const there = modelDtypes.filter((dtype) => files.some(({ path }) => path === graphPath(dtype)));
  const dtype = dtypes.all === 'auto' ? there[0] : there.find((each) => each === dtypes.all);
  if (there.length === 0) {
    const expected = modelDtypes.map(graphPath).join(', ');
    throw new CommandError(`${repo} has none of ${expected}; tools/export makes them from a PyTorch model`);
  }
  if (dtype === undefined)
    throw new CommandError(
      `${repo} has no graph in ${dtypes.all}, only in ${there.join(' and ')}: --dtype ${there[0]}`,
    );
  for (const file of files) if (configs.includes(file.path)) await download(file, { hub, directory });
  await readTextModelConfig(directory);
  const graphs = files.filter(({ path }) => path === graphPath(dtype));
  const small = [...configs, ...tokenizers];
  return {
    small: files.filter(({ path }) => small.includes(path) || isAboutTheModel(path)),
    graphs,
    likelyWeights: likelyWeightsOf(graphs, files),
  };
}

function graphPath(dtype: (typeof modelDtypes)[number]): string {
  return `onnx/${textDtypeFileNames[dtype]}`;
}
