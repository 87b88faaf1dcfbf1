-- Announces a worker, or says that it has loaded. An earlier life under the same id is buried first.
-- KEYS: 1 base
-- ARGV: 1 worker id, 2 incarnation, 3 'loading' | 'ready', 4 capacity in rows, 5 now ms, 6 heartbeat TTL ms, 7 info JSON
-- Returns: 'registered'
local base = KEYS[1]
--- @include "keys"
--- @include "worker-pool"
local workerId, incarnation, capacity, nowMs = ARGV[1], ARGV[2], tonumber(ARGV[4]), tonumber(ARGV[5])
local worker = key('worker', workerId)
if redis.call('HGET', worker, 'incarnation') ~= incarnation then removeWorker(workerId) end
redis.call('SET', key('alive', workerId), '', 'PX', ARGV[6])
if redis.call('HSETNX', worker, 'free', capacity) == 1 then
  redis.call('HSET', worker, 'registeredAtMs', nowMs)
end
redis.call('HSET', worker, 'incarnation', incarnation, 'capacity', capacity, 'info', ARGV[7])
-- Taken for dead while an operator had it drained: it is the same one, and still drained.
if redis.call('GET', key('drained', workerId)) == incarnation then
  redis.call('ZADD', drainingKey, nowMs, workerId)
  redis.call('DEL', key('drained', workerId))
end
if ARGV[3] == 'loading' then
  redis.call('HSET', worker, 'loading', '1')
  redis.call('ZREM', idleKey, workerId)
  redis.call('ZREM', busyKey, workerId)
  if not redis.call('ZSCORE', drainingKey, workerId) then redis.call('ZADD', loadingKey, nowMs, workerId) end
else
  redis.call('HDEL', worker, 'loading')
  -- Its model is known to janitors now: they sweep from here on, or something keeps them from it.
  local seconds, microseconds = unpack(redis.call('TIME'))
  redis.call('HSETNX', sweptKey, 'atMs', string.format('%.0f', seconds * 1000 + math.floor(microseconds / 1000)))
  redis.call('ZREM', loadingKey, workerId)
  placeWorker(workerId, tonumber(redis.call('HGET', worker, 'free')), capacity, nowMs)
  redis.call('PUBLISH', base .. ':wakeup', 'registered')
end
return 'registered'
