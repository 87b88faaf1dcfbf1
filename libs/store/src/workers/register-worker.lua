-- Announces a worker, or says that it has loaded, that it is asleep, or that it takes no leases for now ('loading'): it keeps what it has.
-- An earlier life under the same id is buried first.
-- ARGV: 1 worker id, 2 incarnation, 3 'loading' | 'ready' | 'asleep', 4 capacity in slots, 5 info JSON, 6 most attempts, 7 ms that the last load took, or ''
-- Returns: 'registered' | 'leased' (and it has leases; one that was to be asleep must not be: nothing is changed)
--- @include "requeue"
local workerId, incarnation, drained, worker = ARGV[1], ARGV[2], key('drained', ARGV[1]), key('worker', ARGV[1])
local known = redis.call('HGET', worker, 'incarnation')
if known ~= incarnation then
  if known then removeWorker(workerId, 'worker_lost', tonumber(ARGV[6])) end
  redis.call('HSET', worker, 'incarnation', incarnation, 'free', ARGV[4], 'capacity', ARGV[4], 'registeredAtMs', timeMs(), 'heartbeatAtMs', timeMs())
end
local answer = redis.call('EXISTS', key('leases', workerId)) == 1 and 'leased' or 'registered'
if ARGV[3] == 'asleep' and answer == 'leased' then return answer end
if known == incarnation then changeCapacity(workerId, ARGV[4]) end
redis.call('HSET', worker, 'info', ARGV[5], 'loading', ARGV[3] == 'loading' and '1' or '0', 'asleep', ARGV[3] == 'asleep' and '1' or '0')
if ARGV[7] ~= '' then redis.call('HSET', tallyKey, 'loadMs', ARGV[7]) end
redis.call('ZADD', heardKey, redis.call('HGET', sweptKey, 'count') or 0, workerId)
-- Taken for dead while an operator had it drained: it is the same one, and still drained.
if redis.call('GET', drained) == incarnation then
  moveWorker(workerId, 'draining')
  redis.call('DEL', drained)
elseif redis.call('HGET', worker, 'list') ~= 'draining' then
  if ARGV[3] == 'loading' then moveWorker(workerId, 'loading') else openWorker(workerId) end
  redis.call('PUBLISH', base .. ':wakeup', 'registered')
end
return answer
