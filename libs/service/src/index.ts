export { closingService } from './closing-service.ts';
export { type CreateLoggerOptions, type Logger, createLogger } from './logger.ts';
export { PeriodicLoop, type PeriodicLoopOptions } from './periodic-loop.ts';
export { type MainContext, type RunMainOptions, exitCodeOfWrongSettings, runMain } from './run-main.ts';
export { BaseService, type Service } from './service.ts';
export { ServiceGroup } from './service-group.ts';
