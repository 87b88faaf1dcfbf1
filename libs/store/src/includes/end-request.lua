--- @include "fair-order"
--- @include "emit-event"
--- @include "counters"
--- @include "owner-bytes"
--- @include "request-list"
-- Moves an open request to a terminal state: writes one terminal event, removes it from all indexes and gives its keys
-- a TTL. A lease stays until its worker releases it. error: JSON object or ''. uncounted: bytes that it stored and that
-- are not part of its owner's total yet, or nil.
local deadLength, minuteTtlMs = 1000, 600000
local function endRequest(id, state, error, uncounted)
  local request, nowMs, fields = key('request', id), timeMs(), readFields(id,
    { 'state', 'sinceMs', 'sequence', 'webhook', 'createdAtMs', 'position', 'resultTtlMs', 'outputs', 'owner', 'cost',
      'weight', 'bytes', 'work', 'ownerMaxBytes', 'attached', 'promptless', 'lastFailure' })
  local owner, ttlMs = fields.owner, tonumber(fields.resultTtlMs)
  countTransition(fields, state, nowMs)
  recordDuration('end:' .. state, nowMs - fields.createdAtMs)
  local minute = key('minute', math.floor(nowMs / 60000))
  if redis.call('HINCRBY', minute, state, 1) == 1 then redis.call('PEXPIRE', minute, minuteTtlMs) end
  if fields.state == 'queued' then dequeue(fields, true) end
  redis.call('HDEL', request, 'worker', 'token', 'cancel')
  -- The list of failed requests, for operators; an entry outlives its request.
  if state == 'failed' then
    redis.call('XADD', base .. ':dead', 'MAXLEN', '~', deadLength, '*',
      'id', id, 'error', error, 'failure', fields.lastFailure or '')
  end
  if fields.promptless then
    redis.call('RENAME', key('promptless', id), key('input', id))
    redis.call('HSET', request, 'stripped', '1')
    -- Attachments are as private as the prompt.
    if fields.attached then redis.call('DEL', key('inputs', id)) end
  elseif fields.attached then
    redis.call('PEXPIRE', key('inputs', id), ttlMs)
  end
  local lastExpiryMs = listRequest(id, owner, fields.createdAtMs, nowMs + ttlMs)
  local isLast = redis.call('HINCRBY', base .. ':open', owner, -1) == 0
  if isLast then redis.call('HDEL', base .. ':open', owner) end
  redis.call('ZREM', base .. ':deadlines', id)
  local storedBytes, bucket, part = key('bytes', owner), expiryBucket(nowMs + ttlMs, ttlMs)
  if fields.ownerMaxBytes then
    local change = (uncounted or 0) - fields.work
    fields.bytes, fields.work = fields.bytes - fields.work, 0
    if change ~= 0 then redis.call('HINCRBY', storedBytes, 'total', change) end
    redis.call('HINCRBY', storedBytes, bucket, fields.bytes)
  end
  if isLast then redis.call('PEXPIRE', storedBytes, lastExpiryMs - nowMs + part) end
  local names, infos, work = {}, {}, { key('previews', id) }
  for index = 0, fields.outputs - 1 do
    work[#work + 1] = key('checkpoint', id) .. ':' .. index
    names[#names + 1] = 'output:' .. index
    redis.call('PEXPIRE', key('output', id) .. ':' .. index, ttlMs)
  end
  for _, info in ipairs(redis.call('HMGET', request, unpack(names))) do infos[#infos + 1] = info or nil end
  redis.call('DEL', unpack(work))
  emitEvent(fields, '{"type":"' .. state .. '","outputs":[' .. table.concat(infos, ',') .. ']' ..
    (error ~= '' and ',"error":' .. error or '') .. '}',
    { 'state', state, 'sinceMs', nowMs, 'endedAtMs', nowMs, 'expiresAtMs', nowMs + ttlMs,
      unpack(error ~= '' and { 'error', error } or {}) })
  for _, kind in ipairs({ 'request', 'input', 'events' }) do redis.call('PEXPIRE', key(kind, id), ttlMs) end
end
