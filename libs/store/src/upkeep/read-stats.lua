-- How a model is doing. Costs the same for any number of workers and requests.
-- KEYS: 1 base
-- Returns: {{workers loading, idle, busy, draining, not heard of}, {field of `room`, value, …}, waiting, open, owners with waiting ones,
--           when the oldest waiting one was admitted or '', entries of the outbox, paused 0|1,
--           {ended and failed in each of the last five minutes and this one}, {bounds of the tally's buckets, ms}, {field of the tally, value, …}}
local base = KEYS[1]
--- @include "keys"
--- @include "fair-order"
--- @include "worker-pool"
--- @include "tally"
local workers, minutes, thisMinute = {}, {}, math.floor(timeMs() / 60000)
for position, list in ipairs({ 'loading', 'idle', 'busy', 'draining' }) do workers[position] = redis.call('ZCARD', listKey(list)) end
workers[5] = redis.call('ZCOUNT', heardKey, '-inf', (redis.call('HGET', sweptKey, 'count') or 0) - 2)
for ago = 0, 4 do
  for _, count in ipairs(redis.call('HMGET', key('minute', thisMinute - ago), 'succeeded', 'canceled', 'failed')) do
    minutes[#minutes + 1] = tonumber(count) or 0
  end
end
local oldest = redis.call('ZRANGE', waitingKey, 0, 0, 'WITHSCORES')
return { workers, redis.call('HGETALL', roomKey), redis.call('ZCARD', waitingKey), redis.call('ZCARD', base .. ':deadlines'),
  tonumber(redis.call('HGET', sharesKey, 'lines') or 0), oldest[2] or '', redis.call('XLEN', base .. ':webhooks'),
  redis.call('EXISTS', base .. ':paused'), minutes, tallyBoundsMs, redis.call('HGETALL', tallyKey) }
