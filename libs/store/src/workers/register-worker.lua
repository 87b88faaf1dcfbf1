-- Announces a worker, or says that it has loaded. An earlier life under the same id is buried first.
-- KEYS: 1 base
-- ARGV: 1 worker id, 2 incarnation, 3 'loading' | 'ready', 4 capacity in slots, 5 info JSON, 6 most attempts
-- Returns: 'registered'
local base = KEYS[1]
--- @include "keys"
--- @include "worker-pool"
--- @include "requeue"
local workerId, incarnation, drained = ARGV[1], ARGV[2], key('drained', ARGV[1])
local worker = key('worker', workerId)
local known = redis.call('HGET', worker, 'incarnation')
if known ~= incarnation then
  if known then removeWorker(workerId, 'worker_lost', tonumber(ARGV[6])) end
  redis.call('HSET', worker, 'incarnation', incarnation, 'free', ARGV[4], 'capacity', ARGV[4], 'registeredAtMs', timeMs(), 'heartbeatAtMs', timeMs())
end
redis.call('HSET', worker, 'info', ARGV[5])
redis.call('ZADD', heardKey, redis.call('HGET', sweptKey, 'count') or 0, workerId)
redis.call(ARGV[3] == 'loading' and 'HSET' or 'HDEL', worker, 'loading', ARGV[3] == 'loading' and '1' or nil)
-- Taken for dead while an operator had it drained: it is the same one, and still drained.
if redis.call('GET', drained) == incarnation then
  moveWorker(workerId, 'draining')
  redis.call('DEL', drained)
end
if redis.call('HGET', worker, 'list') == 'draining' then return 'registered' end
if ARGV[3] == 'loading' then
  moveWorker(workerId, 'loading')
else
  openWorker(workerId)
  redis.call('PUBLISH', base .. ':wakeup', 'registered')
end
return 'registered'
