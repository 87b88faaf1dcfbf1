-- A worker that stops leaves the lists by itself; what it still has goes back, and that is no attempt.
-- KEYS: 1 base   ARGV: 1 worker id, 2 incarnation
-- Returns: 1 removed | 0 another incarnation has the id
local base = KEYS[1]
--- @include "keys"
--- @include "worker-pool"
--- @include "requeue"
if redis.call('HGET', key('worker', ARGV[1]), 'incarnation') ~= ARGV[2] then return 0 end
removeWorker(ARGV[1], 'worker_stopped')
return 1
