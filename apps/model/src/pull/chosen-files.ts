import type { DtypeChoice } from '@darkroom/core';
import type { HubCommit, HubFile } from '../hub/hub-repo.ts';

/** Files to download from a repository. */
export interface ChosenFiles {
  /** Configurations, tokenizers, texts. */
  readonly small: readonly HubFile[];
  readonly graphs: readonly HubFile[];
  /** Files named like weights of these graphs; only the graphs themselves tell for certain. */
  readonly likelyWeights: readonly HubFile[];
}

export interface ChooseOptions {
  hub: HubCommit;
  files: readonly HubFile[];
  /** Directory for the file that identifies the model, which is downloaded first. */
  directory: string;
  dtypes: DtypeChoice;
}

const topFiles = /^(?:readme|licen[cs]e|notice|copying)[^/]*$/i;
const licences = /^licen[cs]es\/[^/]+$/i;

/** Returns true for readme, licence and notice files. */
export function isAboutTheModel(path: string): boolean {
  return topFiles.test(path) || licences.test(path);
}

export function likelyWeightsOf(graphs: readonly HubFile[], files: readonly HubFile[]): HubFile[] {
  return files.filter(({ path }) => graphs.some((graph) => path !== graph.path && path.startsWith(graph.path)));
}
