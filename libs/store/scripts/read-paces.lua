-- How fast the live workers of a model that take leases are.
-- KEYS: 1 base
-- Returns: {capacity, pace JSON, …} of those that have measured it
local base = KEYS[1]
--- @include "keys"
local paces = {}
for _, list in ipairs({ idleKey, busyKey }) do
  for _, workerId in ipairs(redis.call('ZRANGE', list, 0, -1)) do
    local capacity, pace = unpack(redis.call('HMGET', key('worker', workerId), 'capacity', 'pace'))
    if pace and redis.call('EXISTS', key('alive', workerId)) == 1 then
      paces[#paces + 1] = capacity
      paces[#paces + 1] = pace
    end
  end
end
return paces
