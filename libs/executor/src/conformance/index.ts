export { describeExecutor, type ExecutorSubject } from './executor-conformance.ts';
export { describeModule, type ModuleSubject } from './describe-module.ts';
