-- Ends a request whose time is over; whoever runs it is told to drop it.
-- KEYS: 1 base   ARGV: 1 id, 2 now ms
-- Returns: 'expired' | 'running' (only the start deadline was over: it had started) | 'early' | 'ended'
local base = KEYS[1]
--- @include "keys"
--- @include "emit-event"
--- @include "queue-order"
--- @include "end-request"
local id, nowMs = ARGV[1], tonumber(ARGV[2])
local request = key('request', id)
local state, worker, deadlineMs, startDeadlineMs, startedAtMs =
  unpack(redis.call('HMGET', request, 'state', 'worker', 'deadlineMs', 'startDeadlineMs', 'startedAtMs'))
if state ~= 'queued' and state ~= 'running' then
  redis.call('ZREM', deadlinesKey, id)
  return 'ended'
end
-- A request that goes back to the queue, after a crash or from a worker that stops, has started in time.
local hasStarted = startedAtMs ~= false
local due = hasStarted and tonumber(deadlineMs) or math.min(deadlineMs, startDeadlineMs)
if due > nowMs then
  redis.call('ZADD', deadlinesKey, due, id)
  return hasStarted and 'running' or 'early'
end
if worker and redis.call('EXISTS', key('worker', worker)) == 1 then
  redis.call('RPUSH', key('inbox', worker), '{"type":"cancel","id":"' .. id .. '"}')
end
endRequest(id, 'expired', nowMs, '')
return 'expired'
