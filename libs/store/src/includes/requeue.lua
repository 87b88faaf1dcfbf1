--- @include "end-request"
--- @include "worker-pool"
-- Requeues a running request at the front of the queue; the caller ends its lease.
-- reason: 'worker_lost' | 'engine_failed' (both count as an attempt unless the request advanced further than ever
--         before) | 'worker_stopped' (never counts)
-- failure: JSON {"code", "message", "worker"} in this order, for operators; clients see only the code;
--          '' for 'worker_stopped'
-- Returns 'requeued' | 'canceled' (it was being canceled) | 'failed' (it was the last attempt)
local failureWords = { engine_error = 'engine error', out_of_memory = 'out of memory', timeout = 'timeout',
  worker_lost = 'the worker was lost' }
local function requeue(id, reason, failure)
  local fields, nowMs = readFields(id,
    { 'state', 'sinceMs', 'sequence', 'webhook', 'owner', 'order', 'cost', 'createdAtMs', 'attempts', 'maxAttempts',
      'hasAdvanced', 'cancel' }), timeMs()
  if failure ~= '' then redis.call('HSET', key('request', id), 'lastFailure', failure) end
  if fields.cancel then
    endRequest(id, 'canceled', '')
    return 'canceled'
  end
  if reason == 'worker_stopped' or fields.hasAdvanced then
    fields.attempts = fields.attempts - 1
  elseif tonumber(fields.attempts) >= tonumber(fields.maxAttempts) then
    local code = string.match(failure, '^{"code":"([%l_]+)"') or 'engine_error'
    endRequest(id, 'failed', '{"code":"' .. code .. '","message":"Failed in all ' .. fields.attempts .. ' attempts: ' ..
      (failureWords[code] or 'engine error') .. '."}')
    return 'failed'
  end
  redis.call('HINCRBY', countersKey, 'requeue:' .. reason, 1)
  countTransition(fields, 'queued', nowMs)
  redis.call('HDEL', key('request', id), 'worker', 'token', 'hasAdvanced', 'loadedAtMs')
  enqueueFront(fields)
  local position, attempt = positionOf(id, fields.owner), fields.attempts + 1
  emitEvent(fields, '{"type":"queued","position":' .. position .. ',"attempt":' .. attempt .. '}',
    { 'state', 'queued', 'sinceMs', nowMs, 'attempts', fields.attempts })
  redis.call('PUBLISH', base .. ':wakeup', 'requeued')
  return 'requeued'
end

-- Deletes a worker and requeues its requests.
-- reason: as for `requeue`; message: how the loss was noticed, for 'worker_lost' only
-- Returns {{id, outcome, trace or ''}, …}.
local function removeWorker(workerId, reason, message)
  local outcomes, failure = {}, ''
  if message then
    failure = '{"code":"worker_lost","message":"' .. message .. '","worker":"' .. workerId .. '"}'
  end
  moveWorker(workerId, nil)
  for _, lease in ipairs(redis.call('HKEYS', key('leases', workerId))) do
    local id, token = string.match(lease, '^(%S+) (%S+)$')
    local held, trace = unpack(redis.call('HMGET', key('request', id), 'token', 'trace'))
    if held == token then outcomes[#outcomes + 1] = { id, requeue(id, reason, failure), trace or '' } end
  end
  redis.call('DEL', key('worker', workerId), key('inbox', workerId), key('leases', workerId))
  redis.call('ZREM', heartbeatsKey, workerId)
  return outcomes
end
