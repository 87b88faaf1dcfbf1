/** Helpers that can be used outside of tests. */
export { launchPart, type LaunchOptions, type Part, type PartName } from './part.ts';
export { runRedisCli, type RedisCluster, startRedisCluster, type StartRedisClusterOptions } from './redis-cluster.ts';
export { type RedisBehindSentinel, startRedisBehindSentinel, type StartSentinelOptions } from './redis-sentinel.ts';
export {
  freePort,
  freePorts,
  redisPrograms,
  type RedisServer,
  startRedisServer,
  type StartRedisServerOptions,
} from './redis-server.ts';
export { hasS3Server, installS3Server, s3Environment, type S3Server, startS3Server } from './s3-server.ts';
export { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';
