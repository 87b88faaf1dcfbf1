-- What became of requests and how long it took, counted in the same step as the transition itself: nothing is counted
-- twice or lost, whoever dies or sends a command again. A process would take its counts with it when it stops.
local tallyKey = base .. ':tally'
-- Upper bounds of the buckets; what is beyond the last falls into one more.
local tallyBoundsMs = { 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000, 1800000, 3600000 }

local function tallyDuration(name, durationMs)
  -- Clocks of two machines differ: nothing takes less than no time.
  local ms, bucket = math.max(0, math.floor(durationMs)), 1
  while tallyBoundsMs[bucket] and ms > tallyBoundsMs[bucket] do bucket = bucket + 1 end
  redis.call('HINCRBY', tallyKey, name .. ':' .. bucket, 1)
  redis.call('HINCRBY', tallyKey, name .. ':ms', string.format('%.0f', ms))
end

-- A request goes from one state to the next; call it before the state is written.
local function tallyTransition(id, nextState, nowMs)
  local request = key('request', id)
  local state, sinceMs, createdAtMs = unpack(redis.call('HMGET', request, 'state', 'sinceMs', 'createdAtMs'))
  tallyDuration('state:' .. state .. ':' .. nextState, nowMs - (sinceMs or createdAtMs))
  redis.call('HSET', request, 'sinceMs', string.format('%.0f', nowMs))
  return createdAtMs
end

local function tallyOne(name)
  redis.call('HINCRBY', tallyKey, name, 1)
end
