--- @include "end-request"
-- A running request goes back to the front of the queue; its lease is the caller's to end.
-- reason: 'worker_lost' | 'engine_failed', which count as an attempt unless it got further than ever in it, | 'worker_stopped', which does not.
-- Returns 'requeued' | 'canceled' (it was to be dropped anyway) | 'failed' (that was its last attempt).
local function requeue(id, reason, mostAttempts)
  local request = key('request', id)
  if redis.call('HEXISTS', request, 'cancel') == 1 then
    endRequest(id, 'canceled', '')
    return 'canceled'
  end
  tallyOne('requeue:' .. reason)
  local owner, order, cost, weight, createdAtMs, attempts, hasAdvanced =
    unpack(redis.call('HMGET', request, 'owner', 'order', 'cost', 'weight', 'createdAtMs', 'attempts', 'hasAdvanced'))
  if reason == 'worker_stopped' or hasAdvanced then
    attempts = redis.call('HINCRBY', request, 'attempts', -1)
  elseif tonumber(attempts) >= mostAttempts then
    endRequest(id, 'failed', '{"code":"worker_lost","message":"Gave up after ' .. attempts .. ' attempts: the worker was lost each time."}')
    return 'failed'
  end
  tallyTransition(id, 'queued', timeMs())
  redis.call('HSET', request, 'state', 'queued')
  redis.call('HDEL', request, 'worker', 'token', 'hasAdvanced')
  rejoinLine({ id = id, owner = owner, order = order, cost = cost, weight = weight, createdAtMs = createdAtMs })
  emitEvent(id, '{"type":"queued","position":' .. positionOf(id, owner) .. ',"attempt":' .. attempts + 1 .. '}')
  redis.call('PUBLISH', base .. ':wakeup', 'requeued')
  return 'requeued'
end

-- Forgets a worker; what it had goes back. Returns {id, outcome, …}.
local function removeWorker(workerId, reason, mostAttempts)
  local outcomes = {}
  moveWorker(workerId, nil)
  for _, lease in ipairs(redis.call('HKEYS', key('leases', workerId))) do
    local id, token = string.match(lease, '^(%S+) (%S+)$')
    if redis.call('HGET', key('request', id), 'token') == token then
      outcomes[#outcomes + 1] = id
      outcomes[#outcomes + 1] = requeue(id, reason, mostAttempts)
    end
  end
  redis.call('DEL', key('worker', workerId), key('inbox', workerId), key('leases', workerId))
  redis.call('ZREM', heardKey, workerId)
  return outcomes
end
