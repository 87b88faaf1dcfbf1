export { type Costs, createCostMeter } from './cost-meter.ts';
export * from './echo-kind.ts';
export { type Exposition, parseExposition, type Sample } from './parse-exposition.ts';
export { type PrivateRedis, startPrivateRedis } from './private-redis.ts';
export { silentLogger } from './silent-logger.ts';
export { allKeys, openTestStore, removeKeys, testEnvelope, type TestStoreOptions } from './test-store.ts';
export { ask, type RedisCluster, startRedisCluster, type StartRedisClusterOptions } from './redis-cluster.ts';
export { type RedisBehindSentinel, startRedisBehindSentinel, type StartSentinelOptions } from './redis-sentinel.ts';
export { openRedisProxy, type RedisProxy } from './redis-proxy.ts';
export {
  freePort,
  freePorts,
  redisPrograms,
  type RedisServer,
  startRedisServer,
  type StartRedisServerOptions,
} from './redis-server.ts';
export * from './add-weights.ts';
export * from './byte-store-conformance.ts';
export * from './dilate-convolution.ts';
export * from './externalize-weights.ts';
export { dispatchNext, type DispatchNextOptions } from './dispatch-next.ts';
export * from './seed-store.ts';
export * from './lay-out-as-in-2022.ts';
export * from './tool-template.ts';
