-- Expires requests whose deadline passed; the worker of a running one gets a cancel message.
-- ARGV: 1 max deadlines to check
-- Returns: {1 when there may be more | 0, ended id, …}
--- @include "worker-pool"
--- @include "end-request"
local nowMs, limit = timeMs(), tonumber(ARGV[1])
local due = redis.call('ZRANGEBYSCORE', base .. ':deadlines', '-inf', nowMs, 'LIMIT', 0, limit)
local result = { #due == limit and 1 or 0 }
for _, id in ipairs(due) do
  local worker, token, deadlineMs, startedAtMs = unpack(redis.call('HMGET', key('request', id),
    'worker', 'token', 'deadlineMs', 'startedAtMs'))
  if not deadlineMs then
    redis.call('ZREM', base .. ':deadlines', id) -- The request was deleted by hand.
  elseif startedAtMs and tonumber(deadlineMs) > nowMs then
    -- It started in time, and may be queued again since: its entry still has the start deadline.
    redis.call('ZADD', base .. ':deadlines', deadlineMs, id)
  else
    if worker then sendCancel(worker, id, token) end
    endRequest(id, 'expired', '')
    result[#result + 1] = id
  end
end
return result
