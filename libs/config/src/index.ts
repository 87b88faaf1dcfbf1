export { keyNamePattern } from './setting-kinds.ts';
export type {
  ApiConfig,
  BatchFormerConfig,
  Config,
  JanitorConfig,
  ModelConfig,
  WebhookSenderConfig,
  WorkerConfig,
} from './config.ts';
export { childEnvironment, memoryReturningEnvironment } from './child-environment.ts';
export { ConfigError } from './config-error.ts';
export { configurationDocument } from './configuration-document.ts';
export { type Environment, loadConfig } from './load-config.ts';
export { isLoopback } from './loopback.ts';
export { type AppName, appNames, type ReaderName } from './setting.ts';
