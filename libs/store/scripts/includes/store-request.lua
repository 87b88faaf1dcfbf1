-- Stores a request that may come in, and puts it into its owner's line. promptless, webhook, retryOf: '' for none.
-- Returns its position.
local function storeRequest(id, given)
  local request, nowMs = key('request', id), given.nowMs
  -- The order inside its owner's line.
  local order = given.priority * 4294967296 + redis.call('INCR', base .. ':arrivals')
  -- An open request outlives its deadline by the time the janitor needs to end it, even if that is down for a while.
  local ttlMs = given.deadlineMs - nowMs + given.resultTtlMs
  redis.call('HSET', request, 'state', 'queued', 'envelope', given.envelope, 'slots', given.slots, 'outputs', given.outputs, 'attempts', 0,
    'createdAtMs', nowMs, 'deadlineMs', given.deadlineMs, 'startDeadlineMs', given.startDeadlineMs,
    'resultTtlMs', given.resultTtlMs, 'goneTtlMs', given.goneTtlMs,
    'owner', given.owner, 'weight', given.weight, 'cost', given.cost)
  for _, field in ipairs({ 'promptless', 'webhook', 'retryOf' }) do
    if given[field] ~= '' then redis.call('HSET', request, field, given[field]) end
  end
  redis.call('PEXPIRE', request, ttlMs)
  redis.call('SET', key('gone', id), given.owner, 'PX', ttlMs + given.goneTtlMs)
  redis.call('SADD', key('open', given.owner), id)
  joinQueue(id, given.owner, order)
  redis.call('ZADD', deadlinesKey, math.min(given.deadlineMs, given.startDeadlineMs), id)
  local position = redis.call('ZRANK', queuedKey, id)
  emitEvent(id, ttlMs, '{"type":"queued","timestampMs":' .. nowMs .. ',"position":' .. position .. ',"attempt":1}', '')
  return position
end
