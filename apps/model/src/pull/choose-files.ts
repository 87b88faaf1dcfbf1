import {
  modelVariants,
  pipelineFolders,
  variantFileNames,
  withoutOptionalEncoder,
} from '@darkroom/diffusion/model-files';
import type { ModelVariant, PipelineClass, PipelineFolders } from '@darkroom/diffusion/model-files';
import { CommandError } from '../command-error.ts';
import type { HubFile } from '../hub/hub-repo.ts';

export interface ChosenFiles {
  /** Configurations, tokenizers, texts. */
  readonly small: readonly HubFile[];
  readonly graphs: readonly HubFile[];
  /** What looks like the weights of these graphs; only the graphs themselves can say. */
  readonly likelyWeights: readonly HubFile[];
}

export interface ChooseFilesOptions {
  repo: string;
  files: readonly HubFile[];
  pipelineClass: PipelineClass;
  dtype: ModelVariant | 'auto';
}

const topFiles = /^(?:model_index\.json|darkroom\.json|(?:readme|licen[cs]e|notice|copying)[^/]*)$/i;
const licences = /^licen[cs]es\/[^/]+$/i;
const tokenizerFiles = /\.(?:json|txt|model)$/;

/**
 * The files of a repository that its pipeline reads: of each graph one dtype, no PyTorch weights, no safety checker.
 *
 * @throws CommandError saying what there is instead, if a graph is not there in the dtype asked for.
 */
export function chooseFiles({ repo, files, pipelineClass, dtype }: ChooseFilesOptions): ChosenFiles {
  const { graphs: parts, tokenizers, scheduler } = foldersIn(files, pipelineClass);
  const graphs = parts.map((part) => chooseGraph(part, { repo, files, dtype }));
  const configs = [...parts.map((part) => `${part}/config.json`), `${scheduler}/scheduler_config.json`];
  const isSmall = ({ path }: HubFile): boolean =>
    topFiles.test(path) ||
    licences.test(path) ||
    configs.includes(path) ||
    tokenizers.some(({ folder }) => isIn(folder, path) && tokenizerFiles.test(path));
  return {
    small: files.filter(isSmall),
    graphs,
    likelyWeights: files.filter(({ path }) =>
      graphs.some((graph) => path !== graph.path && path.startsWith(graph.path)),
    ),
  };
}

/** A repository whose model has no optional encoder has no folder of it. */
function foldersIn(files: readonly HubFile[], pipelineClass: PipelineClass): PipelineFolders {
  const folders = pipelineFolders[pipelineClass];
  const isThere = files.some(({ path }) => path.startsWith(`${folders.optionalEncoder}/`));
  return isThere ? folders : withoutOptionalEncoder(folders);
}

function isIn(folder: string, path: string): boolean {
  return path.startsWith(`${folder}/`) && !path.slice(folder.length + 1).includes('/');
}

function chooseGraph(
  part: string,
  { repo, files, dtype }: Pick<ChooseFilesOptions, 'repo' | 'files' | 'dtype'>,
): HubFile {
  const fileOf = (variant: ModelVariant): HubFile | undefined =>
    files.find(({ path }) => path === `${part}/${variantFileNames[variant]}`);
  const found = (dtype === 'auto' ? modelVariants : [dtype]).map(fileOf).find((file) => file !== undefined);
  if (found !== undefined) return found;
  const there = modelVariants.filter((variant) => fileOf(variant) !== undefined);
  if (there.length > 0) {
    throw new CommandError(`${repo} has no ${part} in ${dtype}, only in ${there.join(' and ')}: --dtype ${there[0]}`);
  }
  throw new CommandError(noOnnxMessage(repo, part, files));
}

function noOnnxMessage(repo: string, part: string, files: readonly HubFile[]): string {
  const expected = Object.values(variantFileNames).join(', ');
  const other = files.find(({ path }) => path.endsWith('.onnx'));
  if (other !== undefined) return `${repo} has none of ${expected} in ${part}/, as exports by Optimum do.`;
  return `${repo} has no ONNX files. Some repositories keep them in a branch (--revision onnx); of many models there is an ONNX export under another name; and Optimum makes one: optimum-cli export onnx --model ${repo} <directory>`;
}
