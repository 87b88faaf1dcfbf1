-- What a former decides on: places, and who is next. Bounded, however many workers and requests there are.
-- KEYS: 1 base   ARGV: 1 the most workers of each kind, 2 the most requests
-- Returns: {by Redis' clock ms, reserved worker or '', {{worker, idle 1|0, free, capacity, {shape, …}}, …},
--           {{id, shape, slots, attempts, waiting since ms}, …}}; both empty while the model is paused or nothing is free
local base = KEYS[1]
--- @include "keys"
--- @include "fair-order"
--- @include "worker-pool"
local workers, requests, most = {}, {}, tonumber(ARGV[1])
local reserved = redis.call('GET', base .. ':reserved') or ''

local function look(workerId, idle)
  if not isHeard(workerId) then return false end
  local free, capacity = unpack(redis.call('HMGET', key('worker', workerId), 'free', 'capacity'))
  local shapes = {}
  for _, lease in ipairs(redis.call('HVALS', key('leases', workerId))) do shapes[#shapes + 1] = string.match(lease, '^%d+ (.*)$') end
  workers[#workers + 1] = { workerId, idle, tonumber(free), tonumber(capacity), shapes }
  return true
end

-- Those that have just died are passed over, until they are buried.
local function lookThrough(idle, command, ...)
  local seen, from, page = 0, 0
  repeat
    local arguments = { ... }
    arguments[#arguments + 1], arguments[#arguments + 2], arguments[#arguments + 3] = 'LIMIT', from, most
    page = redis.call(command, unpack(arguments))
    for _, workerId in ipairs(page) do if seen < most and look(workerId, idle) then seen = seen + 1 end end
    from = from + most
  until #page < most or seen >= most or from >= 8 * most
end

if redis.call('EXISTS', base .. ':paused') == 0 and tonumber(redis.call('HGET', roomKey, 'free') or 0) > 0 then
  lookThrough(1, 'ZRANGEBYSCORE', listKey('idle'), '-inf', '+inf')
  lookThrough(0, 'ZREVRANGEBYSCORE', listKey('busy'), '+inf', 1)
  if workers[1] then
    for _, id in ipairs(nextInOrder(tonumber(ARGV[2]))) do
      local shapeKey, slots, attempts, sinceMs, createdAtMs =
        unpack(redis.call('HMGET', key('request', id), 'shapeKey', 'slots', 'attempts', 'sinceMs', 'createdAtMs'))
      requests[#requests + 1] = { id, shapeKey, tonumber(slots), tonumber(attempts), sinceMs or createdAtMs }
    end
  end
end
return { string.format('%.0f', timeMs()), reserved, workers, requests }
