-- The live workers of a model.
-- KEYS: 1 base
-- Returns: {loading, idle, busy, free rows of live workers that have loaded, queued requests, jobs that can be taken}
local base = KEYS[1]
--- @include "keys"
local counts, freeRows = {}, 0
for position, list in ipairs({ loadingKey, idleKey, busyKey }) do
  counts[position] = 0
  for _, workerId in ipairs(redis.call('ZRANGE', list, 0, -1)) do
    if redis.call('EXISTS', key('alive', workerId)) == 1 then
      counts[position] = counts[position] + 1
      if list ~= loadingKey then freeRows = freeRows + math.max(0, tonumber(redis.call('HGET', key('worker', workerId), 'free'))) end
    end
  end
end
local jobs = redis.call('LLEN', base .. ':queue:wait') + redis.call('ZCARD', base .. ':queue:prioritized')
return { counts[1], counts[2], counts[3], freeRows, redis.call('ZCARD', queuedKey), jobs }
