-- Deletes a worker that has stopped and requeues the requests it still has, which counts no attempt.
-- KEYS: 1 base of the shard
-- ARGV: 1 worker id, 2 incarnation
-- Returns: 'removed' | 'unknown' (also: another incarnation)
--- @include "requeue"
if redis.call('HGET', key('worker', ARGV[1]), 'incarnation') ~= ARGV[2] then return 'unknown' end
removeWorker(ARGV[1], 'worker_stopped')
return 'removed'
