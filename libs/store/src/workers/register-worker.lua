-- Registers a worker, or changes its state: it has loaded ('ready'), is asleep, or takes no leases for now ('loading')
-- but keeps those it has. An earlier incarnation under the same id is removed first.
-- ARGV: 1 worker id, 2 incarnation, 3 'loading' | 'ready' | 'asleep', 4 capacity in slots, 5 info JSON
--       6 duration of the last load in ms, or ''
-- Returns: 'registered' | 'leased' (it has leases; for 'asleep' nothing was changed then)
--- @include "requeue"
local workerId, incarnation = ARGV[1], ARGV[2]
local drained, worker = key('drained', ARGV[1]), key('worker', ARGV[1])
local known = redis.call('HGET', worker, 'incarnation')
redis.call('DEL', base .. ':forgotten')
if known ~= incarnation then
  if known then removeWorker(workerId, 'worker_lost', 'the worker was started again') end
  redis.call('HSET', worker, 'incarnation', incarnation, 'free', ARGV[4], 'capacity', ARGV[4],
    'registeredAtMs', timeMs(), 'heartbeatAtMs', timeMs())
end
local outcome = redis.call('EXISTS', key('leases', workerId)) == 1 and 'leased' or 'registered'
if ARGV[3] == 'asleep' and outcome == 'leased' then return outcome end
if known == incarnation then changeCapacity(workerId, ARGV[4]) end
redis.call('HSET', worker, 'info', ARGV[5], 'loading', ARGV[3] == 'loading' and '1' or '0',
  'asleep', ARGV[3] == 'asleep' and '1' or '0')
if ARGV[6] ~= '' then redis.call('HSET', countersKey, 'loadMs', ARGV[6]) end
redis.call('ZADD', heartbeatsKey, redis.call('HGET', sweptKey, 'count') or 0, workerId)
-- The same incarnation was reaped while an operator had drained it: it stays drained.
if redis.call('GET', drained) == incarnation then
  moveWorker(workerId, 'draining')
  redis.call('DEL', drained)
elseif redis.call('HGET', worker, 'list') ~= 'draining' then
  if ARGV[3] == 'loading' then moveWorker(workerId, 'loading') else openWorker(workerId) end
  redis.call('PUBLISH', base .. ':wakeup', 'registered')
end
return outcome
