import { type ModelDtype, modelDtypes } from '@darkroom/core';
import { readTextModelConfig, textGraphPaths } from '@darkroom/language/model-files';
import { CommandError } from '../command/command-error.ts';
import { download } from '../hub/download.ts';
import { type ChooseOptions, type ChosenFiles, isAboutTheModel, likelyWeightsOf } from './chosen-files.ts';

const configs = ['config.json', 'generation_config.json', 'preprocessor_config.json'];
const tokenizers = ['tokenizer.json', 'tokenizer_config.json', 'special_tokens_map.json', 'chat_template.jinja'];

/**
 * Chooses the graphs of one dtype and the files they need. Downloads config.json first: it tells whether the family is
 * supported, and how many graphs it has.
 *
 * @throws CommandError with the alternatives, if there is no graph in the requested dtype.
 * @throws DarkroomError `model_unsupported` if config.json is not one of a supported model.
 */
export async function chooseTextFiles({ hub, files, directory, dtypes }: ChooseOptions): Promise<ChosenFiles> {
  const { repo } = hub;
  const [part] = Object.keys(dtypes.parts);
  if (part !== undefined)
    throw new CommandError(`--dtype names ${part}, expected one dtype: a text model is one graph`);
  for (const file of files) if (configs.includes(file.path)) await download(file, { hub, directory });
  const { type } = await readTextModelConfig(directory);
  const pathsOf = (dtype: ModelDtype) => textGraphPaths(type, dtype);
  const there = modelDtypes.filter((each) => pathsOf(each).every((path) => files.some((file) => file.path === path)));
  const dtype = dtypes.all === 'auto' ? there[0] : there.find((each) => each === dtypes.all);
  if (there.length === 0) {
    const expected = modelDtypes.map((each) => pathsOf(each).join(' and ')).join(', ');
    throw new CommandError(`${repo} has none of ${expected}; tools/export makes them from a PyTorch model`);
  }
  if (dtype === undefined)
    throw new CommandError(
      `${repo} has no graph in ${dtypes.all}, only in ${there.join(' and ')}: --dtype ${there[0]}`,
    );
  const graphs = files.filter(({ path }) => pathsOf(dtype).includes(path));
  const small = [...configs, ...tokenizers];
  return {
    small: files.filter(({ path }) => small.includes(path) || isAboutTheModel(path)),
    graphs,
    likelyWeights: likelyWeightsOf(graphs, files),
  };
}
