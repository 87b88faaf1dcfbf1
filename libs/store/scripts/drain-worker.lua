-- Takes a worker out of the lists that leases choose from; it keeps what it has.
-- KEYS: 1 base   ARGV: 1 worker id, 2 incarnation, 3 now ms
-- Returns: 1 draining | 0 another incarnation has the id
local base = KEYS[1]
--- @include "keys"
if redis.call('HGET', key('worker', ARGV[1]), 'incarnation') ~= ARGV[2] then return 0 end
redis.call('ZREM', idleKey, ARGV[1])
redis.call('ZREM', busyKey, ARGV[1])
redis.call('ZREM', loadingKey, ARGV[1])
redis.call('ZADD', drainingKey, ARGV[3], ARGV[1])
return 1
