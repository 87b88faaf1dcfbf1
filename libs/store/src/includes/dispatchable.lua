--- @include "fair-order"
--- @include "worker-pool"
-- What a former decides on: places, and who is next. Bounded, however many workers and requests there are.
-- mostWorkers: of each kind; beyondRoom: how many requests beyond those that find room there. What ran before comes on top: what must
-- run alone, and waits for that, is to hide nobody.
-- Returns: {time ms, reserved worker or '', {{worker, list, free, capacity, {shape, …}}, …},
--           {{id, shape, slots, attempts, waiting since ms}, …}}; both empty while the model is paused or nothing is free
local function lookAround(mostWorkers, mostRequests, beyondRoom)
  local workers, requests, room, last = {}, {}, 0, 8 * mostWorkers
  -- Those that have just died are passed over, until they are buried. Of the busy ones those that are full are none.
  local function look(list)
    local seen, range = 0, list == 'busy' and { '+inf', '(0', 'BYSCORE', 'REV', 'LIMIT', 0, last } or { 0, last - 1 }
    for _, workerId in ipairs(redis.call('ZRANGE', listKey(list), unpack(range))) do
      if seen == mostWorkers then break end
      local free, capacity = unpack(redis.call('HMGET', key('worker', workerId), 'free', 'capacity'))
      if tonumber(free) > 0 and isHeard(workerId) then
        local shapes = redis.call('HVALS', key('leases', workerId))
        for position, lease in ipairs(shapes) do shapes[position] = string.match(lease, ' (.*)$') end
        workers[#workers + 1] = { workerId, list, tonumber(free), tonumber(capacity), shapes }
        seen, room = seen + 1, room + free
      end
    end
  end
  local free = redis.call('EXISTS', base .. ':paused') == 0 and redis.call('HGET', roomKey, 'free') or 0
  if tonumber(free) > 0 then
    look('idle')
    look('busy')
    look('asleep')
    local count = math.min(mostRequests, room + beyondRoom + redis.call('ZCARD', frontKey))
    for _, id in ipairs(workers[1] and nextInOrder(count) or {}) do
      local shapeKey, slots, attempts, sinceMs = unpack(redis.call('HMGET', key('request', id), 'shapeKey', 'slots', 'attempts', 'sinceMs'))
      requests[#requests + 1] = { id, shapeKey, tonumber(slots), tonumber(attempts), sinceMs }
    end
  end
  return { string.format('%.0f', timeMs()), redis.call('GET', base .. ':reserved') or '', workers, requests }
end
