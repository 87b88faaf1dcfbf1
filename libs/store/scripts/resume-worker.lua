-- Lets a worker that an operator has drained take leases again.
-- KEYS: 1 base   ARGV: 1 worker id, 2 now ms
-- Returns: 'resumed' (or it was not drained) | 'stopping' (it drains because it stops) | 'unknown'
local base = KEYS[1]
--- @include "keys"
--- @include "worker-pool"
local workerId, nowMs = ARGV[1], tonumber(ARGV[2])
local incarnation, stopping, loading, free, capacity =
  unpack(redis.call('HMGET', key('worker', workerId), 'incarnation', 'stopping', 'loading', 'free', 'capacity'))
if not incarnation then return 'unknown' end
if stopping then return 'stopping' end
if redis.call('ZREM', drainingKey, workerId) == 0 then return 'resumed' end
if loading then
  redis.call('ZADD', loadingKey, nowMs, workerId)
else
  placeWorker(workerId, tonumber(free), tonumber(capacity), nowMs)
  redis.call('PUBLISH', base .. ':wakeup', 'resumed')
end
return 'resumed'
