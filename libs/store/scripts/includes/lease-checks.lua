-- Whether a delivery may still be leased. Ends what is canceled, overdue or out of attempts, so no worker touches it.
-- The last attempt runs alone: a request that kills its workers must not take its neighbours along.
local function checkRequest(id, token, nowMs, mostAttempts, mode)
  if redis.call('GET', lockKey(id)) ~= token then return 'lost' end
  local state, cancel, attempts, deadlineMs, startDeadlineMs, startedAtMs, leasedToken = unpack(redis.call('HMGET',
    key('request', id), 'state', 'cancel', 'attempts', 'deadlineMs', 'startDeadlineMs', 'startedAtMs', 'token'))
  if state ~= 'queued' and state ~= 'running' then return 'ended' end
  -- Asked before: the reply got lost with the connection, and the command was sent again.
  if state == 'running' and leasedToken == token then return 'leased' end
  attempts = tonumber(attempts)
  if cancel then
    endRequest(id, 'canceled', nowMs, '')
  elseif nowMs >= tonumber(deadlineMs) or (not startedAtMs and nowMs >= tonumber(startDeadlineMs)) then
    endRequest(id, 'expired', nowMs, '')
  elseif attempts >= mostAttempts then
    endRequest(id, 'failed', nowMs, '{"code":"worker_lost","message":"Gave up after ' .. attempts .. ' attempts: the worker was lost each time."}')
    return 'exhausted'
  else
    return mode == 'shared' and attempts > 0 and attempts == mostAttempts - 1 and 'alone' or 'waiting'
  end
  return 'ended'
end

local reservationMs = 3000

-- A request that must run alone would wait for ever while others keep its only worker busy: the busy worker with most
-- free rows gets no shared leases for a while, until it is idle. Asking again renews that.
local function reserveWorker()
  local workerId = redis.call('GET', reservedKey) or redis.call('ZREVRANGE', busyKey, 0, 0)[1]
  if workerId then redis.call('SET', reservedKey, workerId, 'PX', reservationMs) end
end

-- A live worker with a free row. One whose heartbeat stopped stays where it is: it comes back, or the janitor buries it.
local function chooseWorker(mode)
  local reserved = redis.call('GET', reservedKey)
  for _, workerId in ipairs(redis.call('ZRANGE', idleKey, 0, -1)) do
    if redis.call('EXISTS', key('alive', workerId)) == 1 and (mode == 'exclusive' or workerId ~= reserved) then
      if mode == 'exclusive' then redis.call('DEL', reservedKey) end
      local capacity = tonumber(redis.call('HGET', key('worker', workerId), 'capacity'))
      return workerId, capacity, capacity
    end
  end
  if mode == 'exclusive' then return reserveWorker() end
  for _, workerId in ipairs(redis.call('ZREVRANGEBYSCORE', busyKey, '+inf', 1)) do
    if redis.call('EXISTS', key('alive', workerId)) == 1 and workerId ~= reserved then
      local free, capacity = unpack(redis.call('HMGET', key('worker', workerId), 'free', 'capacity'))
      return workerId, tonumber(free), tonumber(capacity)
    end
  end
end

-- Marks a request running and returns its inbox entry.
local function startRequest(id, token, workerId, slots, nowMs)
  local request = key('request', id)
  local attempt = redis.call('HINCRBY', request, 'attempts', 1)
  -- Taken again before a janitor could say that it is queued again.
  if redis.call('HGET', request, 'state') == 'running' then
    tallyTransition(id, 'queued', nowMs)
    redis.call('HSET', request, 'state', 'queued')
    tallyOne('requeue:worker_lost')
  end
  tallyTransition(id, 'running', nowMs)
  local deadlineMs, envelope, startedAtMs = unpack(redis.call('HMGET', request, 'deadlineMs', 'envelope', 'startedAtMs'))
  redis.call('HSET', request, 'state', 'running', 'worker', workerId, 'token', token, 'startedAtMs', startedAtMs or nowMs)
  leaveLine(id, 'overtook')
  redis.call('ZREM', queuedKey, id)
  redis.call('ZADD', deadlinesKey, deadlineMs, id)
  emitEvent(id, false, '{"type":"started","timestampMs":' .. nowMs .. ',"attempt":' .. attempt .. '}', '')
  return '{"token":"' .. token .. '","attempt":' .. attempt .. ',"slots":' .. slots ..
    ',"isResumed":' .. (startedAtMs and 'true' or 'false') .. ',"envelope":' .. envelope .. '}'
end
