--- @include "emit-webhook"
-- Appends one event to a request's log and wakes its live readers with the same entry. The log begins with what a waiting
-- request does not need yet: that it was queued. It is capped, the last entries stay.
-- body: JSON object without `sequence` and `timestampMs`; preview: raw bytes, which do not outlive the request's end;
-- span: the output whose text the entry is of. Both may be ''.
local eventLogLength = 8192

local function append(id, sequence, body, span)
  local values = span == '' and { 'body', body } or { 'body', body, 'span', span }
  redis.call('XADD', key('events', id), 'MAXLEN', '~', eventLogLength, sequence .. '-0', unpack(values))
end

local function queuedBody(createdAtMs, position)
  return '{"timestampMs":' .. createdAtMs .. ',"type":"queued","position":' .. position .. ',"attempt":1}'
end

local function emitEvent(id, body, preview, span)
  local request = key('request', id)
  local sequence = redis.call('HINCRBY', request, 'sequence', 1)
  if sequence == 2 then append(id, 1, queuedBody(unpack(redis.call('HMGET', request, 'createdAtMs', 'position'))), '') end
  body = '{"timestampMs":' .. timeMs() .. ',' .. string.sub(body, 2)
  append(id, sequence, body, span or '')
  if preview and preview ~= '' then redis.call('HSET', key('previews', id), sequence, preview) end
  redis.call('PUBLISH', key('events', id), sequence .. ' ' .. body .. '\n' .. (preview or ''))
  emitWebhook(id, sequence, body)
  return sequence
end
