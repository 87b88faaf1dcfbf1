-- Counts a sweep and buries the workers that were not heard of in the last ones: what they had goes back to the queue. Only sweeps that
-- take place count, so while Redis or all janitors are away nobody dies of it.
-- ARGV: 1 least time between two sweeps that count, ms, 2 sweeps a worker may miss, 3 most attempts, 4 most workers to bury
-- Returns: {1 when there may be more | 0, {worker id, {request id, outcome, trace or ''}, …}, …}
--- @include "requeue"
local drainedMs, nowMs, most = 600000, timeMs(), tonumber(ARGV[4])
local count, sweptAtMs = unpack(redis.call('HMGET', sweptKey, 'count', 'atMs'))
-- A clock that was set back must not stop the count.
if not sweptAtMs or math.abs(nowMs - sweptAtMs) >= tonumber(ARGV[1]) then
  count = redis.call('HINCRBY', sweptKey, 'count', 1)
  redis.call('HSET', sweptKey, 'atMs', nowMs, 'patience', math.ceil(ARGV[2] / 2))
end
local dead = redis.call('ZRANGEBYSCORE', heardKey, '-inf', count - ARGV[2] - 1, 'LIMIT', 0, most)
local result = { #dead == most and 1 or 0 }
for _, workerId in ipairs(dead) do
  -- One that is not dead after all registers again within this time, and must not take the leases an operator denied it.
  local incarnation, list, stopping = unpack(redis.call('HMGET', key('worker', workerId), 'incarnation', 'list', 'stopping'))
  if list == 'draining' and not stopping then redis.call('SET', key('drained', workerId), incarnation, 'PX', drainedMs) end
  result[#result + 1] = { workerId, unpack(removeWorker(workerId, 'worker_lost', tonumber(ARGV[3]))) }
  redis.call('HINCRBY', tallyKey, 'buried', 1)
end
return result
