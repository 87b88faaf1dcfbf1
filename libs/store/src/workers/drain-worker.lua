-- Ends a worker's leases: none is granted any more, and it keeps what it has. One that stops is told so by a last message
-- in its inbox: whatever was leased before stands in front of it. One that an operator drains goes on as before, and may be resumed.
-- One that has stopped leaves the lists; what it still has goes back, and that is no attempt.
-- ARGV: 1 worker id, 2 incarnation, or '' for an operator, who means whoever has the id, 3 'drain' | 'resume' | 'remove' | 'ask', 4 what it is asked (JSON)
-- Returns: 'draining' | 'resumed' (or it was not drained) | 'stopping' (it drains because it stops) | 'removed' | 'asked' | 'unknown' (also another life)
--- @include "requeue"
local workerId, worker, isOperator = ARGV[1], key('worker', ARGV[1]), ARGV[2] == ''
local incarnation, list, stopping, loading = unpack(redis.call('HMGET', worker, 'incarnation', 'list', 'stopping', 'loading'))
if not incarnation or (not isOperator and incarnation ~= ARGV[2]) then return 'unknown' end
if ARGV[3] == 'resume' then
  if list ~= 'draining' or stopping then return stopping and 'stopping' or 'resumed' end
  if loading == '1' then moveWorker(workerId, 'loading') else openWorker(workerId) end
  redis.call('PUBLISH', base .. ':wakeup', 'resumed')
  return 'resumed'
end
if ARGV[3] == 'ask' then
  sayToWorker(workerId, ARGV[4])
  return 'asked'
end
if ARGV[3] == 'remove' then
  removeWorker(workerId, 'worker_stopped')
  return 'removed'
end
moveWorker(workerId, 'draining')
if not isOperator then
  redis.call('HSET', worker, 'stopping', '1')
  sayToWorker(workerId, '{"type":"drained"}')
end
return 'draining'
