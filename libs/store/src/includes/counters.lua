-- Counts state transitions and their durations in the same script as the transition: no count is lost or doubled when a
-- process dies or a command is sent again.
local countersKey = base .. ':counters'
-- Upper bounds of the buckets, as in upkeep/read-stats.ts; durations beyond the last fall into one more bucket.
local bucketBoundsMs = { 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 20000, 30000, 60000, 120000, 300000,
  600000, 1800000, 3600000 }
local function recordDuration(name, durationMs)
  -- Durations are never negative: the clock may be set back.
  local ms, bucket = math.max(0, math.floor(durationMs)), 1
  while bucketBoundsMs[bucket] and ms > bucketBoundsMs[bucket] do bucket = bucket + 1 end
  redis.call('HINCRBY', countersKey, name .. ':' .. bucket, 1)
  redis.call('HINCRBY', countersKey, name .. ':ms', ms)
end

-- Counts a request that is about to leave its state. fields: its `state` and `sinceMs`.
local function countTransition(fields, nextState, nowMs)
  recordDuration('state:' .. fields.state .. ':' .. nextState, nowMs - fields.sinceMs)
end
