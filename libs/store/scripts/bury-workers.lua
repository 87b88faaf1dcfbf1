-- Removes every worker whose heartbeat has stopped. When no sweep could run for a while, Redis was away (or all janitors
-- were) and silence means nothing: for some time the living may speak first. Half such a pause may be an outage as well, and
-- the worker the last one to connect again: it is given the time that it lasted, but not again and again to a slow janitor.
-- KEYS: 1 base   ARGV: 1 pause between two sweeps that is none of their doing, ms, 2 time to speak, ms
-- Returns: {'forgiving'} | {'buried', worker id, number of requests it had, …}
local base = KEYS[1]
--- @include "keys"
--- @include "worker-pool"
--- @include "tally"
local seconds, microseconds = unpack(redis.call('TIME'))
local nowMs = seconds * 1000 + math.floor(microseconds / 1000)
local longPauseMs, longestMs = tonumber(ARGV[1]), tonumber(ARGV[2])
local lastMs, forgivingUntilMs = unpack(redis.call('HMGET', sweptKey, 'atMs', 'forgivingUntilMs'))
redis.call('HSET', sweptKey, 'atMs', string.format('%.0f', nowMs))
local pauseMs = nowMs - (lastMs or nowMs)
forgivingUntilMs = tonumber(forgivingUntilMs) or 0
local untilMs
if pauseMs > longPauseMs then
  untilMs = nowMs + longestMs
elseif pauseMs > longPauseMs / 2 and math.abs(nowMs - forgivingUntilMs) > longestMs then
  untilMs = nowMs + math.min(pauseMs, longestMs)
end
if untilMs then
  forgivingUntilMs = untilMs
  redis.call('HSET', sweptKey, 'forgivingUntilMs', string.format('%.0f', untilMs))
end
-- What is left can be more than was given: a clock was set back, or another server's runs behind.
local leftMs = forgivingUntilMs - nowMs
if leftMs > 0 and leftMs <= longestMs then return { 'forgiving' } end

-- One that is not dead after all registers again within this time, and must not take the leases an operator denied it.
local drainedMs = 600000
local function rememberDrain(workerId)
  if not redis.call('ZSCORE', drainingKey, workerId) then return end
  local incarnation, stopping = unpack(redis.call('HMGET', key('worker', workerId), 'incarnation', 'stopping'))
  if incarnation and not stopping then redis.call('SET', key('drained', workerId), incarnation, 'PX', drainedMs) end
end

local buried = { 'buried' }
for _, list in ipairs({ idleKey, busyKey, loadingKey, drainingKey }) do
  for _, workerId in ipairs(redis.call('ZRANGE', list, 0, -1)) do
    if redis.call('EXISTS', key('alive', workerId)) == 0 then
      rememberDrain(workerId)
      local requests = removeWorker(workerId)
      tallyOne('buried')
      buried[#buried + 1] = workerId
      buried[#buried + 1] = requests
    end
  end
end
return buried
