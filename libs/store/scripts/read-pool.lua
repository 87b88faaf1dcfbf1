-- The live workers of a model.
-- KEYS: 1 base
-- Returns: {loading, idle, busy, free rows of live workers that have loaded and are not reserved, queued requests,
--           jobs that can be taken, {rows of the first of these, as many as there could be room for}, paused 0|1}
local base = KEYS[1]
--- @include "keys"
--- @include "queue-order"
--- @include "is-paused"
local counts, freeRows, reserved = {}, 0, redis.call('GET', reservedKey)
for position, list in ipairs({ loadingKey, idleKey, busyKey }) do
  counts[position] = 0
  for _, workerId in ipairs(redis.call('ZRANGE', list, 0, -1)) do
    if redis.call('EXISTS', key('alive', workerId)) == 1 then
      counts[position] = counts[position] + 1
      if list ~= loadingKey and workerId ~= reserved then freeRows = freeRows + math.max(0, tonumber(redis.call('HGET', key('worker', workerId), 'free'))) end
    end
  end
end
-- In the order in which they come out: BullMQ's wait list from the right, then by tag, then what its canceled
-- and expired requests have left in the queue.
local wait, prioritized, nextRows = base .. ':queue:wait', base .. ':queue:prioritized', {}
local function peek(id)
  if #nextRows < freeRows then nextRows[#nextRows + 1] = tonumber(redis.call('HGET', key('request', id), 'slots')) or 0 end
  return #nextRows < freeRows
end
if freeRows > 0 then
  local standing = redis.call('LRANGE', wait, -freeRows, -1)
  for position = #standing, 1, -1 do peek(standing[position]) end
  if #nextRows < freeRows then eachWaiting(peek) end
  for _, id in ipairs(#nextRows < freeRows and redis.call('ZRANGE', prioritized, 0, freeRows - 1) or {}) do
    if not redis.call('ZSCORE', queuedKey, id) then peek('') end
  end
end
local jobs = redis.call('LLEN', wait) + redis.call('ZCARD', prioritized)
return { counts[1], counts[2], counts[3], freeRows, redis.call('ZCARD', queuedKey), jobs, nextRows, isPaused() and 1 or 0 }
