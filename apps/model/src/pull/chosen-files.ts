import type { DtypeChoice } from '@darkroom/core';
import type { HubCommit, HubFile } from '../hub/hub-repo.ts';

/** What is to be downloaded of a repository. */
export interface ChosenFiles {
  /** Configurations, tokenizers, texts. */
  readonly small: readonly HubFile[];
  readonly graphs: readonly HubFile[];
  /** What looks like the weights of these graphs; only the graphs themselves can say. */
  readonly likelyWeights: readonly HubFile[];
}

export interface ChooseOptions {
  hub: HubCommit;
  files: readonly HubFile[];
  /** Where the file that says what the model is comes before the others. */
  directory: string;
  dtypes: DtypeChoice;
}

const topFiles = /^(?:readme|licen[cs]e|notice|copying)[^/]*$/i;
const licences = /^licen[cs]es\/[^/]+$/i;

/** Whether a file says for people what the model is, and what may be done with it. */
export function isAboutTheModel(path: string): boolean {
  return topFiles.test(path) || licences.test(path);
}

export function likelyWeightsOf(graphs: readonly HubFile[], files: readonly HubFile[]): HubFile[] {
  return files.filter(({ path }) => graphs.some((graph) => path !== graph.path && path.startsWith(graph.path)));
}
