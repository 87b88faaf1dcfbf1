--- @include "end-request"
--- @include "worker-pool"
-- A running request goes back to the front of the queue; its lease is the caller's to end.
-- reason: 'worker_lost' | 'engine_failed', which count as an attempt unless it got further than ever, | 'worker_stopped', which does not.
-- Returns 'requeued' | 'canceled' (it was to be dropped anyway) | 'failed' (that was its last attempt).
local function requeue(id, reason, mostAttempts)
  local facts, nowMs = factsOf(id,
    { 'state', 'sinceMs', 'sequence', 'webhook', 'owner', 'order', 'cost', 'createdAtMs', 'attempts', 'hasAdvanced', 'cancel' }), timeMs()
  if facts.cancel then
    endRequest(id, 'canceled', '')
    return 'canceled'
  end
  if reason == 'worker_stopped' or facts.hasAdvanced then
    facts.attempts = facts.attempts - 1
  elseif tonumber(facts.attempts) >= mostAttempts then
    endRequest(id, 'failed', '{"code":"worker_lost","message":"Gave up after ' .. facts.attempts .. ' attempts: the worker was lost each time."}')
    return 'failed'
  end
  redis.call('HINCRBY', tallyKey, 'requeue:' .. reason, 1)
  tallyState(facts, 'queued', nowMs)
  redis.call('HDEL', key('request', id), 'worker', 'token', 'hasAdvanced', 'loadedAtMs')
  rejoinFront(facts)
  emitEvent(facts, '{"type":"queued","position":' .. positionOf(id, facts.owner) .. ',"attempt":' .. facts.attempts + 1 .. '}',
    { 'state', 'queued', 'sinceMs', nowMs, 'attempts', facts.attempts })
  redis.call('PUBLISH', base .. ':wakeup', 'requeued')
  return 'requeued'
end

-- Forgets a worker; what it had goes back. Returns {{id, outcome, trace or ''}, …}.
local function removeWorker(workerId, reason, mostAttempts)
  local outcomes = {}
  moveWorker(workerId, nil)
  for _, lease in ipairs(redis.call('HKEYS', key('leases', workerId))) do
    local id, token = string.match(lease, '^(%S+) (%S+)$')
    local held, trace = unpack(redis.call('HMGET', key('request', id), 'token', 'trace'))
    if held == token then outcomes[#outcomes + 1] = { id, requeue(id, reason, mostAttempts), trace or '' } end
  end
  redis.call('DEL', key('worker', workerId), key('inbox', workerId), key('leases', workerId))
  redis.call('ZREM', heardKey, workerId)
  return outcomes
end
