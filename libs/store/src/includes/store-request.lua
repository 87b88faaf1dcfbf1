--- @include "fair-order"
--- @include "emit-event"
--- @include "byte-budget"
-- Stores a request that may come in and puts it into its owner's line. given: the facts of requests/stored-facts.ts, decoded.
-- promptless, webhook: JSON or ''. Returns its position.
local function storeRequest(id, given, input, promptless, webhook)
  local request, nowMs = key('request', id), timeMs()
  local order = given.priority * 4294967296 + redis.call('INCR', base .. ':arrivals')
  local deadlineMs, startDeadlineMs = nowMs + given.timeoutMs, nowMs + math.min(given.timeoutMs, given.startTimeoutMs)
  redis.call('SET', key('input', id), input)
  redis.call('HSET', request, 'state', 'queued', 'owner', given.owner, 'weight', given.weight, 'cost', given.cost, 'slots', given.slots,
    'outputs', given.outputs, 'shapeKey', given.shapeKey, 'bytes', given.bytes, 'attempts', 0, 'order', order, 'sequence', 1,
    'createdAtMs', nowMs, 'deadlineMs', deadlineMs, 'startDeadlineMs', startDeadlineMs, 'resultTtlMs', given.resultTtlMs)
  for field, value in pairs({ webhook = webhook, retryOf = given.retryOf or '', trace = given.trace or '' }) do
    if value ~= '' then redis.call('HSET', request, field, value) end
  end
  if promptless ~= '' then redis.call('SET', key('promptless', id), promptless) end
  redis.call('HINCRBY', base .. ':open', given.owner, 1)
  claimBytes(given.owner, given.bytes)
  joinLine({ id = id, owner = given.owner, order = order, cost = given.cost, weight = given.weight, createdAtMs = nowMs })
  redis.call('ZADD', base .. ':deadlines', startDeadlineMs, id)
  local position = positionOf(id, given.owner)
  redis.call('HSET', request, 'position', position)
  redis.call('PUBLISH', base .. ':wakeup', 'admitted')
  return position
end
