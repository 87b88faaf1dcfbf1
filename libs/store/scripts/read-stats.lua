-- How a model is doing, for metrics.
-- KEYS: 1 base
-- Returns: {live workers: loading, idle, busy, draining, without a heartbeat, rows of idle and busy ones, free rows of these,
--           waiting requests, running ones, owners with waiting ones, when the oldest waiting one was admitted or '',
--           entries of the outbox, paused 0|1, {bounds of the tally's buckets, ms}, {field of the tally, value, …}}
local base = KEYS[1]
--- @include "keys"
--- @include "tally"
--- @include "queue-order"
--- @include "is-paused"
local stats, dead, rows, freeRows = {}, 0, 0, 0
for position, list in ipairs({ loadingKey, idleKey, busyKey, drainingKey }) do
  stats[position] = 0
  for _, workerId in ipairs(redis.call('ZRANGE', list, 0, -1)) do
    if redis.call('EXISTS', key('alive', workerId)) == 0 then
      dead = dead + 1
    else
      stats[position] = stats[position] + 1
      if list == idleKey or list == busyKey then
        local capacity, free = unpack(redis.call('HMGET', key('worker', workerId), 'capacity', 'free'))
        rows, freeRows = rows + capacity, freeRows + math.max(0, free)
      end
    end
  end
end

-- Each owner's line is in order of arrival inside a priority, so the oldest is the first of one of these.
local oldestMs
local function look(id)
  local createdAtMs = tonumber(id and redis.call('HGET', key('request', id), 'createdAtMs') or nil)
  if createdAtMs and (not oldestMs or createdAtMs < oldestMs) then oldestMs = createdAtMs end
end
for _, owner in ipairs(redis.call('SMEMBERS', linesKey)) do
  local from = '-inf'
  while from do
    local id, order = unpack(redis.call('ZRANGEBYSCORE', lineKey(owner), from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1))
    look(id)
    from = order and string.format('%.0f', (math.floor(order / 4294967296) + 1) * 4294967296)
  end
end
-- In no line any more: chosen, or running before.
for _, id in ipairs(redis.call('ZRANGEBYSCORE', queuedKey, '-inf', '(0')) do look(id) end

local waiting = redis.call('ZCARD', queuedKey)
local running = math.max(0, redis.call('ZCARD', deadlinesKey) - waiting)
return { stats[1], stats[2], stats[3], stats[4], dead, rows, freeRows, waiting, running, redis.call('SCARD', linesKey),
  oldestMs and string.format('%.0f', oldestMs) or '', redis.call('XLEN', base .. ':webhooks'), isPaused() and 1 or 0,
  tallyBoundsMs, redis.call('HGETALL', tallyKey) }
