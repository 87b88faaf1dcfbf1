export { keyNamePattern } from './setting-kinds.ts';
export { childEnvironment, memoryReturningEnvironment } from './child-environment.ts';
export { ConfigError } from './config-error.ts';
export { configurationDocument } from './configuration-document.ts';
export * from './load-config.ts';
export { type AppName, appNames, type ReaderName } from './setting.ts';
