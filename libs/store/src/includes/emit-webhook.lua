-- The outbox: what a request's webhook is to be told of is written in the same step as the event itself, so that no
-- crash comes between them. apps/webhook-sender moves it on. Capped, for a system that runs no sender.
local outboxLength = 100000
local webhookKinds = { started = 'started', progress = 'progress', preview = 'progress', succeeded = 'completed', failed = 'completed', canceled = 'completed', expired = 'completed' }
local function emitWebhook(id, sequence, body, nowMs)
  local request, outbox = key('request', id), base .. ':webhooks'
  local stored, owner, attempts, retryOf, lastMs = unpack(redis.call('HMGET', request, 'webhook', 'owner', 'attempts', 'retryOf', 'webhookProgressAtMs'))
  if not stored then return end
  local webhook, kind = cjson.decode(stored), webhookKinds[cjson.decode(body).type]
  local isAsked = false
  for _, asked in ipairs(webhook.events) do isAsked = isAsked or asked == kind end
  if not isAsked or (kind == 'progress' and lastMs and math.abs(nowMs - lastMs) < webhook.progressIntervalMs) then return end
  if kind == 'progress' then redis.call('HSET', request, 'webhookProgressAtMs', nowMs) end
  redis.call('XADD', outbox, 'MAXLEN', '~', outboxLength, '*', 'id', id, 'sequence', sequence, 'owner', owner,
    'url', webhook.url, 'attempt', attempts, 'body', body, 'retryOf', retryOf or '', 'kind', webhook.kind)
  redis.call('PUBLISH', outbox, '')
end
