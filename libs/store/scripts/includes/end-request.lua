--- @include "tally"
-- Moves a request to a terminal state: one terminal event, out of the queue's indexes, everything with a TTL.
-- Callers have checked that it is open. error: JSON object or ''.
local function endRequest(id, state, nowMs, error)
  local request = key('request', id)
  local resultTtlMs, goneTtlMs, outputCount, owner = unpack(redis.call('HMGET', request, 'resultTtlMs', 'goneTtlMs', 'outputs', 'owner'))
  local createdAtMs = tallyTransition(id, state, nowMs)
  tallyDuration('end:' .. state, nowMs - createdAtMs)
  redis.call('HSET', request, 'state', state, 'endedAtMs', nowMs, 'expiresAtMs', nowMs + resultTtlMs)
  redis.call('HDEL', request, 'worker', 'token', 'cancel')
  local promptless = redis.call('HGET', request, 'promptless')
  if promptless then
    redis.call('HSET', request, 'envelope', promptless, 'stripped', '1')
    redis.call('HDEL', request, 'promptless')
  end
  if error ~= '' then redis.call('HSET', request, 'error', error) end
  leaveLine(id, 'dropped')
  redis.call('ZREM', queuedKey, id)
  redis.call('SREM', key('open', owner), id)
  redis.call('ZREM', deadlinesKey, id)
  local outputs = {}
  for index = 0, outputCount - 1 do outputs[#outputs + 1] = redis.call('HGET', request, 'output:' .. index) or nil end
  local body = '{"type":"' .. state .. '","timestampMs":' .. nowMs .. ',"outputs":[' .. table.concat(outputs, ',') .. ']' ..
    (error ~= '' and ',"error":' .. error or '') .. '}'
  emitEvent(id, resultTtlMs, body, '')
  redis.call('PEXPIRE', request, resultTtlMs)
  redis.call('SET', key('gone', id), owner, 'PX', resultTtlMs + goneTtlMs)
  for index = 0, outputCount - 1 do
    redis.call('PEXPIRE', key('output', id) .. ':' .. index, resultTtlMs)
    redis.call('DEL', key('checkpoint', id) .. ':' .. index)
  end
end
