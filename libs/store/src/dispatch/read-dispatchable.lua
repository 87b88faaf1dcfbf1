-- What a former decides on: places, and who is next. Bounded, however many workers and requests there are.
-- ARGV: 1 the most workers of each kind, 2 the most requests
-- Returns: {time ms, reserved worker or '', {{worker, idle 1|0, free, capacity, {shape, …}}, …},
--           {{id, shape, slots, attempts, waiting since ms}, …}}; both empty while the model is paused or nothing is free
--- @include "fair-order"
--- @include "worker-pool"
local workers, requests, most = {}, {}, tonumber(ARGV[1])
-- Those that have just died are passed over, until they are buried.
local function look(list)
  local seen, from, page = 0, 0, nil
  repeat
    page = redis.call('ZRANGE', listKey(list), from, from + most - 1, unpack(list == 'busy' and { 'REV' } or {}))
    for _, workerId in ipairs(page) do
      local free, capacity = unpack(redis.call('HMGET', key('worker', workerId), 'free', 'capacity'))
      if seen < most and tonumber(free) > 0 and isHeard(workerId) then
        local shapes = {}
        for _, lease in ipairs(redis.call('HVALS', key('leases', workerId))) do shapes[#shapes + 1] = string.match(lease, ' (.*)$') end
        workers[#workers + 1] = { workerId, list == 'idle' and 1 or 0, tonumber(free), tonumber(capacity), shapes }
        seen = seen + 1
      end
    end
    from = from + most
  until #page < most or seen == most or from == 8 * most
end
local free = redis.call('EXISTS', base .. ':paused') == 0 and redis.call('HGET', roomKey, 'free') or 0
if tonumber(free) > 0 then
  look('idle')
  look('busy')
  for _, id in ipairs(workers[1] and nextInOrder(tonumber(ARGV[2])) or {}) do
    local shapeKey, slots, attempts, sinceMs = unpack(redis.call('HMGET', key('request', id), 'shapeKey', 'slots', 'attempts', 'sinceMs'))
    requests[#requests + 1] = { id, shapeKey, tonumber(slots), tonumber(attempts), sinceMs }
  end
end
return { string.format('%.0f', timeMs()), redis.call('GET', base .. ':reserved') or '', workers, requests }
