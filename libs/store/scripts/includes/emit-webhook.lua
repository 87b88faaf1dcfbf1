-- The outbox: what a request's webhook is to be told of is written in the same step as the event itself, so that no
-- crash comes between them. apps/webhook-sender moves it on. Capped, for a system that runs no sender.
local outboxLength = 100000
local webhookKinds = { started = 'started', progress = 'progress', succeeded = 'completed', failed = 'completed', canceled = 'completed', expired = 'completed' }

local function isWanted(request, webhook, event)
  local kind, isAsked = webhookKinds[event.type], false
  for _, asked in ipairs(webhook.events) do isAsked = isAsked or asked == kind end
  if not isAsked or kind ~= 'progress' then return isAsked end
  local lastMs = redis.call('HGET', request, 'webhookProgressAtMs')
  -- Clocks of two workers differ: a step back is as good as one ahead.
  if lastMs and math.abs(event.timestampMs - lastMs) < webhook.progressIntervalMs then return false end
  redis.call('HSET', request, 'webhookProgressAtMs', string.format('%.0f', event.timestampMs))
  return true
end

local function emitWebhook(id, sequence, body)
  local request, outbox = key('request', id), base .. ':webhooks'
  local stored = redis.call('HGET', request, 'webhook')
  if not stored then return end
  local webhook = cjson.decode(stored)
  if not isWanted(request, webhook, cjson.decode(body)) then return end
  local owner, attempts, retryOf = unpack(redis.call('HMGET', request, 'owner', 'attempts', 'retryOf'))
  redis.call('XADD', outbox, 'MAXLEN', '~', outboxLength, '*', 'id', id, 'sequence', sequence, 'owner', owner,
    'url', webhook.url, 'attempt', attempts, 'body', body, 'retryOf', retryOf or '', 'kind', webhook.kind)
  redis.call('PUBLISH', outbox, '')
end
