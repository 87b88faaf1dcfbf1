-- Counts a sweep and buries the workers that were not heard of in the last ones: what they had goes back to the queue. Only sweeps that
-- take place count, so while Redis or all janitors are away nobody dies of it.
-- KEYS: 1 base   ARGV: 1 least time between two sweeps that count, ms, 2 sweeps a worker may miss, 3 most attempts, 4 most workers to bury at once
-- Returns: {1 when there may be more | 0, {worker id, request id, outcome, …}, …}
local base = KEYS[1]
--- @include "keys"
--- @include "worker-pool"
--- @include "requeue"
local count, sweptAtMs = unpack(redis.call('HMGET', sweptKey, 'count', 'atMs'))
-- A clock that was set back must not stop the count.
if not sweptAtMs or math.abs(timeMs() - sweptAtMs) >= tonumber(ARGV[1]) then
  count = redis.call('HINCRBY', sweptKey, 'count', 1)
  redis.call('HSET', sweptKey, 'atMs', timeMs())
end
local drainedMs, most = 600000, tonumber(ARGV[4])
local dead = redis.call('ZRANGE', heardKey, '-inf', count - ARGV[2] - 1, 'BYSCORE', 'LIMIT', 0, most)
local result = { #dead == most and 1 or 0 }
for _, workerId in ipairs(dead) do
  -- One that is not dead after all registers again within this time, and must not take the leases an operator denied it.
  local incarnation, list, stopping = unpack(redis.call('HMGET', key('worker', workerId), 'incarnation', 'list', 'stopping'))
  if list == 'draining' and not stopping then redis.call('SET', key('drained', workerId), incarnation, 'PX', drainedMs) end
  result[#result + 1] = { workerId, unpack(removeWorker(workerId, 'worker_lost', tonumber(ARGV[3]))) }
  tallyOne('buried')
end
return result
