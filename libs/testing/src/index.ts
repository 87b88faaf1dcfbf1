export { type Exposition, parseExposition, type Sample } from './parse-exposition.ts';
export { type PrivateRedis, startPrivateRedis } from './private-redis.ts';
export { silentLogger } from './silent-logger.ts';
export { allKeys, openTestStore, testEnvelope, type TestStoreOptions } from './test-store.ts';
