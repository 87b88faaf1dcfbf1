-- Counts a sweep, reaps the workers that sent no heartbeat in the last sweeps, and requeues their requests. Only sweeps
-- that take place count, so an outage of Redis or of all janitors expires no worker.
-- ARGV: 1 min ms between two sweeps that count, 2 sweeps a worker may miss, 3 max workers to reap
-- Returns: {1 if there may be more | 0, ms of sweeps since the last worker,
--           {worker id, {request id, outcome, trace or ''}, …}, …}
--- @include "requeue"
local drainedMs, pauseMs, nowMs, limit = 600000, 60000, timeMs(), tonumber(ARGV[3])
-- A janitor with a stale list of models must not create keys of a forgotten model.
if redis.call('EXISTS', base .. ':forgotten') == 1 then return { 0, 0 } end
local count, sweptAtMs = unpack(redis.call('HMGET', sweptKey, 'count', 'atMs'))
-- The distance counts, not the order: a clock that was set back must not stop the sweeps.
if not sweptAtMs or math.abs(nowMs - sweptAtMs) >= tonumber(ARGV[1]) then
  count = redis.call('HINCRBY', sweptKey, 'count', 1)
  redis.call('HSET', sweptKey, 'atMs', nowMs, 'maxMissed', math.ceil(ARGV[2] / 2))
  -- A long pause between two sweeps is an outage, and does not count as time without a worker.
  if redis.call('ZCARD', heartbeatsKey) > 0 then
    redis.call('HDEL', sweptKey, 'unservedMs')
  elseif sweptAtMs then
    redis.call('HINCRBY', sweptKey, 'unservedMs', math.max(0, math.min(nowMs - sweptAtMs, pauseMs)))
  end
end
local dead = redis.call('ZRANGEBYSCORE', heartbeatsKey, '-inf', count - ARGV[2] - 1, 'LIMIT', 0, limit)
local result = { #dead == limit and 1 or 0, tonumber(redis.call('HGET', sweptKey, 'unservedMs') or 0) }
for _, workerId in ipairs(dead) do
  -- If a drained worker is alive after all, it registers again within this time, and must then be drained still.
  local incarnation, list, stopping = unpack(redis.call('HMGET', key('worker', workerId),
    'incarnation', 'list', 'stopping'))
  if list == 'draining' and not stopping then
    redis.call('SET', key('drained', workerId), incarnation, 'PX', drainedMs)
  end
  local message = 'the worker missed ' .. ARGV[2] .. ' sweeps: it died, or could not reach Redis'
  result[#result + 1] = { workerId, unpack(removeWorker(workerId, 'worker_lost', message)) }
  redis.call('HINCRBY', countersKey, 'reaped', 1)
end
return result
