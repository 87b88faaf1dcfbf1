-- What became of requests and how long it took, counted in the same step as the transition itself: nothing is counted
-- twice or lost, whoever dies or sends a command again. A process would take its counts with it when it stops.
local tallyKey = base .. ':tally'
-- Upper bounds of the buckets, as in upkeep/read-stats.ts; what is beyond the last falls into one more.
local tallyBoundsMs = { 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000, 1800000, 3600000 }
local function tallyDuration(name, durationMs)
  -- A clock may be set back: nothing takes less than no time.
  local ms, bucket = math.max(0, math.floor(durationMs)), 1
  while tallyBoundsMs[bucket] and ms > tallyBoundsMs[bucket] do bucket = bucket + 1 end
  redis.call('HINCRBY', tallyKey, name .. ':' .. bucket, 1)
  redis.call('HINCRBY', tallyKey, name .. ':ms', ms)
end

-- A request is about to go from one state to the next. facts: its `state` and `sinceMs`.
local function tallyState(facts, nextState, nowMs)
  tallyDuration('state:' .. facts.state .. ':' .. nextState, nowMs - facts.sinceMs)
end
