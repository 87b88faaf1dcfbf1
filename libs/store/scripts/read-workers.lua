-- Every registered worker of a model.
-- KEYS: 1 base
-- Returns: {{id, list it is in, 1 with a heartbeat | 0 without, capacity, free rows, registered at ms, last heartbeat ms, info JSON, pace JSON or '', 1 while it loads | 0, 1 when it stops | 0}, …}
local base = KEYS[1]
--- @include "keys"
local workers = {}
for name, list in pairs({ loading = loadingKey, idle = idleKey, busy = busyKey, draining = drainingKey }) do
  for _, workerId in ipairs(redis.call('ZRANGE', list, 0, -1)) do
    local fields = redis.call('HMGET', key('worker', workerId), 'capacity', 'free', 'registeredAtMs', 'heartbeatAtMs', 'info', 'pace', 'loading', 'stopping')
    local capacity, free, registeredAtMs, heartbeatAtMs, info, pace, loading, stopping = unpack(fields)
    workers[#workers + 1] = { workerId, name, redis.call('EXISTS', key('alive', workerId)), capacity, free, registeredAtMs,
      heartbeatAtMs or registeredAtMs, info, pace or '', loading and 1 or 0, stopping and 1 or 0 }
  end
end
return workers
