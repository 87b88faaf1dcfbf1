--- @include "emit-webhook"
-- Appends one event to a request's log and wakes its live readers with the same entry. The log begins with what a waiting
-- request does not need yet: that it was queued. It is capped, the last entries stay.
-- body: JSON object without `sequence` and `timestampMs`; preview: raw bytes, which do not outlive the request's end, or nil;
-- span: the output whose text the entry is of, or nil.
local eventLogLength = 8192
local function queuedBody(createdAtMs, position)
  return '{"timestampMs":' .. createdAtMs .. ',"type":"queued","position":' .. position .. ',"attempt":1}'
end
local function emitEvent(id, body, preview, span)
  local request, events, nowMs = key('request', id), key('events', id), timeMs()
  local sequence = redis.call('HINCRBY', request, 'sequence', 1)
  if sequence == 2 then redis.call('XADD', events, '1-0', 'body', queuedBody(unpack(redis.call('HMGET', request, 'createdAtMs', 'position')))) end
  body = '{"timestampMs":' .. nowMs .. ',' .. string.sub(body, 2)
  redis.call('XADD', events, 'MAXLEN', '~', eventLogLength, sequence .. '-0', 'body', body, unpack(span and { 'span', span } or {}))
  if preview then redis.call('HSET', key('previews', id), sequence, preview) end
  redis.call('PUBLISH', events, sequence .. ' ' .. body .. '\n' .. (preview or ''))
  emitWebhook(id, sequence, body, nowMs)
  return sequence
end
