-- The outbox: what a request's webhook is to be told of is written in the same step as the event itself, so that no
-- crash comes between them. apps/webhook-sender moves it on. Capped, for a system that runs no sender.
local outboxLength = 100000
-- What is text of a success goes along, as far as all of it is short: receivers of webhooks expect messages of 20 kB at most.
local textsLength = 16384
local function textFields(id, outputs)
  local fields, length = {}, 0
  for _, info in ipairs(outputs) do
    length = length + info.bytes
    if string.sub(info.contentType, 1, 5) ~= 'text/' or length > textsLength then return {} end
    local chunks = {}
    for chunk = 0, info.chunks - 1 do chunks[chunk + 1] = redis.call('HGET', key('output', id) .. ':' .. info.index, chunk) or '' end
    fields[#fields + 1] = 'text:' .. info.index
    fields[#fields + 1] = table.concat(chunks)
  end
  return fields
end
local function emitWebhook(facts, body, nowMs)
  -- Most requests have none.
  if not facts.webhook then return end
  local id, request, outbox = facts.id, key('request', facts.id), base .. ':webhooks'
  local owner, attempts, retryOf, lastMs = unpack(redis.call('HMGET', request, 'owner', 'attempts', 'retryOf', 'webhookProgressAtMs'))
  local webhook = cjson.decode(facts.webhook)
  -- What it cannot read, such as half a character, must not take the other writes of the batch along.
  local isRead, event = pcall(cjson.decode, body)
  if not isRead then return end
  local kinds = { started = 'started', progress = 'progress', preview = 'progress', succeeded = 'completed', failed = 'completed', canceled = 'completed', expired = 'completed' }
  local kind = kinds[event.type]
  local isAsked = false
  for _, asked in ipairs(webhook.events) do isAsked = isAsked or asked == kind end
  if not isAsked or (kind == 'progress' and lastMs and math.abs(nowMs - lastMs) < webhook.progressIntervalMs) then return end
  if kind == 'progress' then redis.call('HSET', request, 'webhookProgressAtMs', nowMs) end
  redis.call('XADD', outbox, 'MAXLEN', '~', outboxLength, '*', 'id', id, 'sequence', facts.sequence, 'owner', owner,
    'url', webhook.url, 'attempt', attempts, 'body', body, 'retryOf', retryOf or '', 'kind', webhook.kind,
    unpack(event.type == 'succeeded' and textFields(id, event.outputs) or {}))
  redis.call('PUBLISH', outbox, '')
end

-- Fields of a request's hash by their names; false where there is none.
local function factsOf(id, names)
  local facts = { id = id }
  for position, value in ipairs(redis.call('HMGET', key('request', id), unpack(names))) do facts[names[position]] = value end
  return facts
end

-- Appends one event to a request's log and wakes its live readers with the same entry. The log begins with what a waiting
-- request does not need yet: that it was queued. It is capped, the last entries stay.
-- facts: its `sequence`, which is counted up, and `webhook`; of one that may be waiting `createdAtMs` and `position`, too
-- body: JSON object without `sequence` and `timestampMs`; changes: what is written into its hash with it, {field, value, …};
-- preview: raw bytes, which do not outlive the request's end, or nil; span: the output whose text the entry is of, or nil;
-- told: what live readers get in place of the body, or nil; bytes: what else they get, so that they need not ask, or nil.
local eventLogLength = 8192
local function queuedBody(createdAtMs, position)
  return '{"timestampMs":' .. createdAtMs .. ',"type":"queued","position":' .. position .. ',"attempt":1}'
end
local function emitEvent(facts, body, changes, preview, span, told, bytes)
  local events, nowMs, sequence = key('events', facts.id), timeMs(), facts.sequence + 1
  if sequence == 2 then redis.call('XADD', events, '1-0', 'body', queuedBody(facts.createdAtMs, facts.position)) end
  facts.sequence = sequence
  redis.call('HSET', key('request', facts.id), 'sequence', sequence, unpack(changes))
  local stamp = '{"timestampMs":' .. nowMs .. ','
  body, told = stamp .. string.sub(body, 2), stamp .. string.sub(told or body, 2)
  redis.call('XADD', events, 'MAXLEN', '~', eventLogLength, sequence .. '-0', 'body', body, unpack(span and { 'span', span } or {}))
  if preview then redis.call('HSET', key('previews', facts.id), sequence, preview) end
  redis.call('PUBLISH', events, sequence .. ' ' .. told .. '\n' .. (preview or bytes or ''))
  emitWebhook(facts, body, nowMs)
end
