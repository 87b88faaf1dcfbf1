--- @include "emit-webhook"
-- Appends one event to a request's log and wakes its live readers with the same entry.
-- body: JSON object without `sequence`; attachment: raw bytes or ''. The log is capped, the last entries stay.
local eventLogLength = 8192
local function emitEvent(id, ttlMs, body, attachment)
  local sequence = redis.call('HINCRBY', key('request', id), 'sequence', 1)
  redis.call('XADD', key('events', id), 'MAXLEN', '~', eventLogLength, sequence .. '-0', 'body', body, 'attachment', attachment)
  if ttlMs then redis.call('PEXPIRE', key('events', id), ttlMs) end
  redis.call('PUBLISH', key('events', id), sequence .. ' ' .. body .. '\n' .. attachment)
  emitWebhook(id, sequence, body)
  return sequence
end
