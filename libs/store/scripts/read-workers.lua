-- Every registered worker of a model.
-- KEYS: 1 base
-- Returns: {{id, list it is in, 1 with a heartbeat | 0 without, capacity, free rows, registered at ms, last heartbeat ms, info JSON, pace JSON or ''}, …}
local base = KEYS[1]
--- @include "keys"
local workers = {}
for name, list in pairs({ loading = loadingKey, idle = idleKey, busy = busyKey, draining = drainingKey }) do
  for _, workerId in ipairs(redis.call('ZRANGE', list, 0, -1)) do
    local fields = redis.call('HMGET', key('worker', workerId), 'capacity', 'free', 'registeredAtMs', 'heartbeatAtMs', 'info', 'pace')
    local capacity, free, registeredAtMs, heartbeatAtMs, info, pace = unpack(fields)
    workers[#workers + 1] = { workerId, name, redis.call('EXISTS', key('alive', workerId)), capacity, free, registeredAtMs,
      heartbeatAtMs or registeredAtMs, info, pace or '' }
  end
end
return workers
