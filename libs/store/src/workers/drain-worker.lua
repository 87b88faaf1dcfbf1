-- Drains a worker: it gets no more leases. Because an operator wants it to: it stays registered. Because it stops: it
-- gets 'drained' as the last message, behind all leases.
-- KEYS: 1 base of the shard
-- ARGV: 1 worker id, 2 incarnation of a worker that stops, or '' for an operator (any incarnation)
-- Returns: 'draining' | 'unknown' (also: another incarnation)
--- @include "worker-pool"
local workerId, worker, isOperator = ARGV[1], key('worker', ARGV[1]), ARGV[2] == ''
local incarnation = redis.call('HGET', worker, 'incarnation')
if not incarnation or (not isOperator and incarnation ~= ARGV[2]) then return 'unknown' end
moveWorker(workerId, 'draining')
if not isOperator then
  redis.call('HSET', worker, 'stopping', '1')
  sendToWorker(workerId, '{"type":"drained"}')
end
return 'draining'
