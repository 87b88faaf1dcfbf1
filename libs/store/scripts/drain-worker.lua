-- Takes a worker out of the lists that leases choose from; it keeps what it has. The
-- inbox gets a last message: whatever was leased before stands in front of it.
-- KEYS: 1 base   ARGV: 1 worker id, 2 incarnation, 3 now ms
-- Returns: 1 draining | 0 another incarnation has the id
local base = KEYS[1]
--- @include "keys"
if redis.call('HGET', key('worker', ARGV[1]), 'incarnation') ~= ARGV[2] then return 0 end
redis.call('ZREM', idleKey, ARGV[1])
redis.call('ZREM', busyKey, ARGV[1])
redis.call('ZREM', loadingKey, ARGV[1])
redis.call('ZADD', drainingKey, ARGV[3], ARGV[1])
redis.call('RPUSH', key('inbox', ARGV[1]), '{"type":"drained"}')
return 1
