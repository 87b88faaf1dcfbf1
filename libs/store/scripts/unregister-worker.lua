-- A worker that stops leaves the lists by itself.
-- KEYS: 1 base   ARGV: 1 worker id, 2 incarnation
-- Returns: 1 removed | 0 another incarnation has the id
local base = KEYS[1]
--- @include "keys"
--- @include "worker-pool"
if redis.call('HGET', key('worker', ARGV[1]), 'incarnation') ~= ARGV[2] then return 0 end
removeWorker(ARGV[1])
return 1
