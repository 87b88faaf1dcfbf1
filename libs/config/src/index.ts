export { keyNamePattern } from './setting-kinds.ts';
export { childEnvironment, memoryReturningEnvironment, exportFlagsToEnvironment } from './child-environment.ts';
export { ConfigError } from './config-error.ts';
export { type Flags, flagOf, readFlags } from './flags.ts';
export * from './load-config.ts';
export { heartbeatMs } from './settings.ts';
export { answerFlags, configurationDocument, readVersion } from './show-settings.ts';
export { type AppName, appNames, type ReaderName } from './setting.ts';
export { modelDirectoryProblem, modelDirProblem } from './model-directory-problem.ts';
