-- The webhook outbox: an event for a webhook is written in the same script as the event itself, so a crash cannot
-- separate them. apps/webhook-sender delivers it. Capped, for systems that run no sender.
local outboxLength = 100000
-- Texts of a successful request are included if all are short: receivers of webhooks expect messages of at most 20 kB.
local textsLength = 16384
local function textFields(id, outputs)
  local fields, length = {}, 0
  for _, info in ipairs(outputs) do
    length = length + info.bytes
    if string.sub(info.contentType, 1, 5) ~= 'text/' or length > textsLength then return {} end
    local chunks = {}
    for chunk = 0, info.chunks - 1 do
      chunks[chunk + 1] = redis.call('HGET', key('output', id) .. ':' .. info.index, chunk) or ''
    end
    fields[#fields + 1] = 'text:' .. info.index
    fields[#fields + 1] = table.concat(chunks)
  end
  return fields
end
-- Returns the fields of the request's hash, as JSON, that webhooks in the format of another API show beside the event.
local function shownFields(request)
  local names = { 'createdAtMs', 'startedAtMs', 'done', 'total' }
  local outputs = tonumber(redis.call('HGET', request, 'outputs') or 0)
  for index = 0, outputs - 1 do names[#names + 1] = 'output:' .. index end
  local fields = {}
  for position, value in ipairs(redis.call('HMGET', request, unpack(names))) do
    fields[names[position]] = value or nil
  end
  return cjson.encode(fields)
end
local function emitWebhook(fields, body, nowMs)
  -- Most requests have no webhook.
  if not fields.webhook then return end
  local id, request, outbox = fields.id, key('request', fields.id), base .. ':webhooks'
  local owner, attempts, retryOf, lastMs = unpack(redis.call('HMGET', request,
    'owner', 'attempts', 'retryOf', 'webhookProgressAtMs'))
  local webhook = cjson.decode(fields.webhook)
  -- A body that cjson cannot parse, such as half a surrogate pair, must not abort the other writes of the batch.
  local isValid, event = pcall(cjson.decode, body)
  if not isValid then return end
  local kinds = { started = 'started', progress = 'progress', preview = 'progress', succeeded = 'completed',
    failed = 'completed', canceled = 'completed', expired = 'completed' }
  local kind = kinds[event.type]
  if event.type == 'output' and event.chunkIndex == event.output.chunks - 1 then kind = 'output' end
  local isSubscribed = false
  for _, wanted in ipairs(webhook.events) do isSubscribed = isSubscribed or wanted == kind end
  if not isSubscribed then return end
  if kind == 'progress' and lastMs and math.abs(nowMs - lastMs) < webhook.progressIntervalMs then return end
  if kind == 'progress' then redis.call('HSET', request, 'webhookProgressAtMs', nowMs) end
  redis.call('XADD', outbox, 'MAXLEN', '~', outboxLength, '*', 'id', id, 'sequence', fields.sequence, 'owner', owner,
    'url', webhook.url, 'attempt', attempts, 'body', body, 'retryOf', retryOf or '', 'kind', webhook.kind,
    'view', webhook.view and cjson.encode(webhook.view) or '', 'shown', webhook.view and shownFields(request) or '',
    unpack(event.type == 'succeeded' and textFields(id, event.outputs) or {}))
  redis.call('PUBLISH', outbox, '')
end

local function append(list, ...)
  for _, value in ipairs({ ... }) do list[#list + 1] = value end
end

-- Reads fields of a request's hash, by name; false where a field is missing. Also sets `id`.
local function readFields(id, names)
  local fields = { id = id }
  for position, value in ipairs(redis.call('HMGET', key('request', id), unpack(names))) do
    fields[names[position]] = value
  end
  return fields
end

-- Appends one event to the log of a request and publishes it to live readers. The log is created with the second event:
-- until then only 'queued' has happened, which is derived from the hash. It is capped; the last entries stay.
-- fields: `sequence`, which is incremented, and `webhook`; if it may be queued also `createdAtMs` and `position`; if
--         its stored bytes changed also `bytes` and `work`
-- body: JSON object without `sequence` and `timestampMs`
-- changes: written into the request's hash, {field, value, …}
-- preview: raw bytes, deleted when the request ends, or nil
-- span: index of the output whose text the entry is part of, or nil
-- liveBody: published instead of the body, or nil
-- bytes: published in addition, so that readers need no round trip, or nil
local eventLogLength = 8192
local stampBytes = #'{"timestampMs":1234567890123'
local function queuedBody(createdAtMs, position)
  return '{"timestampMs":' .. createdAtMs .. ',"type":"queued","position":' .. position .. ',"attempt":1}'
end
local function emitEvent(fields, body, changes, preview, span, liveBody, bytes)
  local events, nowMs, sequence = key('events', fields.id), timeMs(), fields.sequence + 1
  if sequence == 2 then redis.call('XADD', events, '1-0', 'body', queuedBody(fields.createdAtMs, fields.position)) end
  fields.sequence = sequence
  if fields.bytes then append(changes, 'bytes', fields.bytes, 'work', fields.work) end
  redis.call('HSET', key('request', fields.id), 'sequence', sequence, unpack(changes))
  local stamp = '{"timestampMs":' .. nowMs .. ','
  body, liveBody = stamp .. string.sub(body, 2), stamp .. string.sub(liveBody or body, 2)
  redis.call('XADD', events, 'MAXLEN', '~', eventLogLength, sequence .. '-0', 'body', body,
    unpack(span and { 'span', span } or {}))
  if preview then redis.call('HSET', key('previews', fields.id), sequence, preview) end
  redis.call('PUBLISH', events, sequence .. ' ' .. liveBody .. '\n' .. (preview or bytes or ''))
  emitWebhook(fields, body, nowMs)
end
