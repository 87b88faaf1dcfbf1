/** What needs no test around it. */
export { launchPart, type Part, type PartName } from './part.ts';
export {
  freePort,
  freePorts,
  redisPrograms,
  type RedisServer,
  startRedisServer,
  type StartRedisServerOptions,
} from './redis-server.ts';
export { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';
