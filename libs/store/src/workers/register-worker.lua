-- Announces a worker, or says that it has loaded. An earlier life under the same id is buried first.
-- ARGV: 1 worker id, 2 incarnation, 3 'loading' | 'ready', 4 capacity in slots, 5 info JSON, 6 most attempts
-- Returns: 'registered'
--- @include "requeue"
local workerId, incarnation, drained, worker = ARGV[1], ARGV[2], key('drained', ARGV[1]), key('worker', ARGV[1])
local known = redis.call('HGET', worker, 'incarnation')
if known ~= incarnation then
  if known then removeWorker(workerId, 'worker_lost', tonumber(ARGV[6])) end
  redis.call('HSET', worker, 'incarnation', incarnation, 'free', ARGV[4], 'capacity', ARGV[4], 'registeredAtMs', timeMs(), 'heartbeatAtMs', timeMs())
elseif redis.call('HGET', worker, 'list') == 'loading' then
  -- An engine may find out how much room it has.
  changeFree(workerId, ARGV[4] - redis.call('HGET', worker, 'capacity'))
  redis.call('HSET', worker, 'capacity', ARGV[4])
end
redis.call('HSET', worker, 'info', ARGV[5], 'loading', ARGV[3] == 'loading' and '1' or '0')
redis.call('ZADD', heardKey, redis.call('HGET', sweptKey, 'count') or 0, workerId)
-- Taken for dead while an operator had it drained: it is the same one, and still drained.
if redis.call('GET', drained) == incarnation then
  moveWorker(workerId, 'draining')
  redis.call('DEL', drained)
elseif redis.call('HGET', worker, 'list') ~= 'draining' then
  if ARGV[3] == 'loading' then moveWorker(workerId, 'loading') else openWorker(workerId) end
  redis.call('PUBLISH', base .. ':wakeup', 'registered')
end
return 'registered'
