-- A worker is in exactly one of loading, idle, busy and draining. idle is ordered by the time it became idle, busy by
-- free rows; the other two get no leases, whatever they give back.
local function placeWorker(workerId, free, capacity, nowMs)
  if redis.call('ZSCORE', loadingKey, workerId) or redis.call('ZSCORE', drainingKey, workerId) then return end
  if free >= capacity then
    redis.call('ZREM', busyKey, workerId)
    redis.call('ZADD', idleKey, 'NX', nowMs, workerId)
  else
    redis.call('ZREM', idleKey, workerId)
    redis.call('ZADD', busyKey, free, workerId)
  end
end

-- Who must run alone is not to wait for a worker that takes nothing any more.
local function unreserveWorker(workerId)
  if redis.call('GET', reservedKey) == workerId then redis.call('DEL', reservedKey) end
end

-- Takes a worker out of the lists that leases choose from; it keeps what it has.
local function stopLeasing(workerId, nowMs)
  redis.call('ZREM', idleKey, workerId)
  redis.call('ZREM', busyKey, workerId)
  redis.call('ZREM', loadingKey, workerId)
  redis.call('ZADD', drainingKey, nowMs, workerId)
  unreserveWorker(workerId)
end

-- Gives rows of one lease back. all: the lease ends. Returns how many rows became free.
local function releaseLease(workerId, id, token, rows, nowMs)
  local worker, leases, lease = key('worker', workerId), key('leases', workerId), id .. ' ' .. token
  local held = tonumber(redis.call('HGET', leases, lease))
  if not held then return 0 end
  if rows == 'all' or rows >= held then rows = held end
  if rows == held then redis.call('HDEL', leases, lease) else redis.call('HINCRBY', leases, lease, -rows) end
  local free = redis.call('HINCRBY', worker, 'free', rows)
  placeWorker(workerId, free, tonumber(redis.call('HGET', worker, 'capacity')), nowMs)
  redis.call('PUBLISH', base .. ':wakeup', 'released')
  return rows
end

-- Forgets a worker. The locks of what it had are dropped, so that the next stalled check requeues it at once and a
-- zombie's writes are refused.
local function removeWorker(workerId)
  local leases = redis.call('HKEYS', key('leases', workerId))
  for _, lease in ipairs(leases) do
    local id, token = string.match(lease, '^(%S+) (%S+)$')
    if redis.call('GET', lockKey(id)) == token then redis.call('DEL', lockKey(id)) end
    if redis.call('HGET', key('request', id), 'token') == token then redis.call('HDEL', key('request', id), 'token') end
  end
  redis.call('DEL', key('worker', workerId), key('alive', workerId), key('inbox', workerId), key('leases', workerId))
  redis.call('ZREM', idleKey, workerId)
  redis.call('ZREM', busyKey, workerId)
  redis.call('ZREM', loadingKey, workerId)
  redis.call('ZREM', drainingKey, workerId)
  unreserveWorker(workerId)
  return #leases
end
