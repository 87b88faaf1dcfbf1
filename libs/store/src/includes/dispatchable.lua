--- @include "fair-order"
--- @include "worker-pool"
-- Reads what a batch-former decides on: free workers and the next requests. The result is bounded.
-- maxWorkers: of each list. Requests that ran before are added to those that fit, so that one waiting for exclusive use
-- of a worker hides no others.
-- Returns: {time ms, reserved worker or '', {{worker, list, free, capacity, {shape, …}}, …},
--           {{id, shape, slots, attempts, waiting since ms, max attempts}, …}};
--           no workers and no requests while the model is paused or nothing is free
local function readDispatchable(maxWorkers, maxRequests)
  local workers, requests, slotsLeft, last = {}, {}, 0, 8 * maxWorkers
  -- Skips workers that missed heartbeats and may be reaped soon, and busy ones without free slots.
  local function look(list)
    local seen = 0
    local range = list == 'busy' and { '+inf', '(0', 'BYSCORE', 'REV', 'LIMIT', 0, last } or { 0, last - 1 }
    for _, workerId in ipairs(redis.call('ZRANGE', listKey(list), unpack(range))) do
      if seen == maxWorkers then break end
      local free, capacity = unpack(redis.call('HMGET', key('worker', workerId), 'free', 'capacity'))
      if tonumber(free) > 0 and isAlive(workerId) then
        local shapes = redis.call('HVALS', key('leases', workerId))
        for position, lease in ipairs(shapes) do shapes[position] = string.match(lease, ' (.*)$') end
        workers[#workers + 1] = { workerId, list, tonumber(free), tonumber(capacity), shapes }
        seen, slotsLeft = seen + 1, slotsLeft + free
      end
    end
  end
  local free = redis.call('EXISTS', base .. ':paused') == 0 and redis.call('HGET', capacityKey, 'free') or 0
  if tonumber(free) > 0 then
    look('idle')
    look('busy')
    look('asleep')
    local count = math.min(maxRequests, slotsLeft + redis.call('ZCARD', frontKey))
    for _, id in ipairs(workers[1] and nextRequests(count) or {}) do
      local shapeKey, slots, attempts, sinceMs, maxAttempts = unpack(redis.call('HMGET', key('request', id),
        'shapeKey', 'slots', 'attempts', 'sinceMs', 'maxAttempts'))
      requests[#requests + 1] = { id, shapeKey, tonumber(slots), tonumber(attempts), sinceMs, tonumber(maxAttempts) }
    end
  end
  return { string.format('%.0f', timeMs()), redis.call('GET', base .. ':reserved') or '', workers, requests }
end
