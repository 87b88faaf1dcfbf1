-- Keeps a worker alive for another TTL.
-- KEYS: 1 base   ARGV: 1 worker id, 2 incarnation, 3 heartbeat TTL ms
-- Returns: 'alive' | 'buried' (it was taken for dead: it must register again)
local base = KEYS[1]
--- @include "keys"
if redis.call('HGET', key('worker', ARGV[1]), 'incarnation') ~= ARGV[2] then return 'buried' end
redis.call('SET', key('alive', ARGV[1]), '', 'PX', ARGV[3])
return 'alive'
