export { keyNamePattern } from './setting-kinds.ts';
export { childEnvironment, memoryReturningEnvironment, passOn } from './child-environment.ts';
export { ConfigError } from './config-error.ts';
export { configurationDocument } from './configuration-document.ts';
export { type Flags, flagOf, readFlags } from './flags.ts';
export * from './load-config.ts';
export { answerFlags, readVersion } from './show-settings.ts';
export { type AppName, appNames, type ReaderName } from './setting.ts';
