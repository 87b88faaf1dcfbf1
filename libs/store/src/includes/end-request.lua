--- @include "fair-order"
--- @include "emit-event"
--- @include "tally"
--- @include "kept-until"
-- Moves an open request to a terminal state: one terminal event, out of all indexes, everything with a TTL. A lease stays until its
-- worker lets go. error: JSON object or ''.
local deadLength, minuteTtlMs = 1000, 600000
local function endRequest(id, state, error)
  local request, nowMs, facts = key('request', id), timeMs(), factsOf(id,
    { 'state', 'sinceMs', 'sequence', 'webhook', 'createdAtMs', 'position', 'resultTtlMs', 'outputs', 'owner', 'cost', 'weight', 'bytes', 'written', 'attached' })
  local owner, ttlMs = facts.owner, tonumber(facts.resultTtlMs)
  tallyState(facts, state, nowMs)
  tallyDuration('end:' .. state, nowMs - facts.createdAtMs)
  local minute = key('minute', math.floor(nowMs / 60000))
  if redis.call('HINCRBY', minute, state, 1) == 1 then redis.call('PEXPIRE', minute, minuteTtlMs) end
  if facts.state == 'queued' then leaveQueue(facts, true) end
  redis.call('HDEL', request, 'worker', 'token', 'cancel')
  -- Where operators look; it outlives the request.
  if state == 'failed' then redis.call('XADD', base .. ':dead', 'MAXLEN', '~', deadLength, '*', 'id', id, 'error', error) end
  if redis.call('EXISTS', key('promptless', id)) == 1 then
    redis.call('RENAME', key('promptless', id), key('input', id))
    redis.call('HSET', request, 'stripped', '1')
    -- What came with it is as private as its prompt.
    if facts.attached then redis.call('DEL', key('inputs', id)) end
  elseif facts.attached then
    facts.written = (facts.written or 0) + facts.attached
    redis.call('HSET', request, 'written', facts.written)
    redis.call('PEXPIRE', key('inputs', id), ttlMs)
  end
  if redis.call('HINCRBY', base .. ':open', owner, -1) == 0 then redis.call('HDEL', base .. ':open', owner) end
  redis.call('ZREM', base .. ':deadlines', id)
  -- In place of what it might have come to, what it came to, until that goes.
  local kept, field, part = key('bytes', owner), keptUntil(nowMs + ttlMs, ttlMs)
  redis.call('HINCRBY', kept, field, facts.written or 0)
  -- Minus zero is no number to Redis before 7.2.
  if redis.call('HINCRBY', kept, 'open', 0 - facts.bytes) == 0 then redis.call('PEXPIRE', kept, ttlMs + part) end
  local infos, work = {}, { key('previews', id) }
  for index = 0, facts.outputs - 1 do
    work[#work + 1] = key('checkpoint', id) .. ':' .. index
    infos[#infos + 1] = redis.call('HGET', request, 'output:' .. index) or nil
    redis.call('PEXPIRE', key('output', id) .. ':' .. index, ttlMs)
  end
  redis.call('DEL', unpack(work))
  emitEvent(facts, '{"type":"' .. state .. '","outputs":[' .. table.concat(infos, ',') .. ']' .. (error ~= '' and ',"error":' .. error or '') .. '}',
    { 'state', state, 'sinceMs', nowMs, 'endedAtMs', nowMs, 'expiresAtMs', nowMs + ttlMs, unpack(error ~= '' and { 'error', error } or {}) })
  for _, kind in ipairs({ 'request', 'input', 'events' }) do redis.call('PEXPIRE', key(kind, id), ttlMs) end
end
