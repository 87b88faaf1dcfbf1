-- Ends requests whose time is over; whoever runs one is told to drop it.
-- ARGV: 1 the most to look at
-- Returns: {1 when there may be more | 0, ended id, …}
--- @include "worker-pool"
--- @include "end-request"
local nowMs, most = timeMs(), tonumber(ARGV[1])
local due = redis.call('ZRANGEBYSCORE', base .. ':deadlines', '-inf', nowMs, 'LIMIT', 0, most)
local result = { #due == most and 1 or 0 }
for _, id in ipairs(due) do
  local worker, token, deadlineMs, startedAtMs = unpack(redis.call('HMGET', key('request', id), 'worker', 'token', 'deadlineMs', 'startedAtMs'))
  if not deadlineMs then
    redis.call('ZREM', base .. ':deadlines', id) -- Deleted by hand.
  elseif startedAtMs and tonumber(deadlineMs) > nowMs then
    -- One that has started, and may wait again since, has kept its start deadline.
    redis.call('ZADD', base .. ':deadlines', deadlineMs, id)
  else
    if worker then cancelAt(worker, id, token) end
    endRequest(id, 'expired', '')
    result[#result + 1] = id
  end
end
return result
