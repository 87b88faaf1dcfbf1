-- Ends the drain of a worker by an operator.
-- KEYS: 1 base of the shard
-- ARGV: 1 worker id
-- Returns: 'resumed' (also if it was not drained) | 'stopping' (it drains because it stops) | 'unknown'
--- @include "worker-pool"
local workerId = ARGV[1]
local incarnation, list, stopping, loading = unpack(redis.call('HMGET', key('worker', workerId),
  'incarnation', 'list', 'stopping', 'loading'))
if not incarnation then return 'unknown' end
if list ~= 'draining' or stopping then return stopping and 'stopping' or 'resumed' end
if loading == '1' then moveWorker(workerId, 'loading') else openWorker(workerId) end
redis.call('PUBLISH', base .. ':wakeup', 'resumed')
return 'resumed'
