--- @include "fair-order"
--- @include "emit-event"
--- @include "tally"
--- @include "kept-until"
-- Moves an open request to a terminal state: one terminal event, out of all indexes, everything with a TTL. A lease stays until its
-- worker lets go. error: JSON object or ''.
local deadLength, minuteTtlMs = 1000, 600000
local function endRequest(id, state, error)
  local request, nowMs = key('request', id), timeMs()
  local ttlMs, outputs, owner, cost, weight, createdAtMs, bytes, written, before = unpack(redis.call('HMGET', request,
    'resultTtlMs', 'outputs', 'owner', 'cost', 'weight', 'createdAtMs', 'bytes', 'written', 'state'))
  moveTo(id, state, nowMs)
  tallyDuration('end:' .. state, nowMs - createdAtMs)
  local minute = key('minute', math.floor(nowMs / 60000))
  redis.call('HINCRBY', minute, state, 1)
  redis.call('PEXPIRE', minute, minuteTtlMs)
  if before == 'queued' then leaveQueue({ id = id, owner = owner, cost = cost, weight = weight }, true) end
  redis.call('HSET', request, 'endedAtMs', nowMs, 'expiresAtMs', nowMs + ttlMs)
  redis.call('HDEL', request, 'worker', 'token', 'cancel')
  if error ~= '' then redis.call('HSET', request, 'error', error) end
  -- Where operators look; it outlives the request.
  if state == 'failed' then redis.call('XADD', base .. ':dead', 'MAXLEN', '~', deadLength, '*', 'id', id, 'error', error) end
  if redis.call('EXISTS', key('promptless', id)) == 1 then
    redis.call('RENAME', key('promptless', id), key('input', id))
    redis.call('HSET', request, 'stripped', '1')
  end
  if redis.call('HINCRBY', base .. ':open', owner, -1) == 0 then redis.call('HDEL', base .. ':open', owner) end
  redis.call('ZREM', base .. ':deadlines', id)
  -- In place of what it might have come to, what it came to, until that goes.
  local kept, field, part = key('bytes', owner), keptUntil(nowMs + ttlMs, ttlMs)
  redis.call('HINCRBY', kept, field, written or 0)
  -- Minus zero is no number to Redis before 7.2.
  if redis.call('HINCRBY', kept, 'open', 0 - bytes) == 0 then redis.call('PEXPIRE', kept, ttlMs + part) end
  local infos = {}
  for index = 0, outputs - 1 do
    infos[#infos + 1] = redis.call('HGET', request, 'output:' .. index) or nil
    redis.call('DEL', key('checkpoint', id) .. ':' .. index)
    redis.call('PEXPIRE', key('output', id) .. ':' .. index, ttlMs)
  end
  redis.call('DEL', key('previews', id))
  emitEvent(id, '{"type":"' .. state .. '","outputs":[' .. table.concat(infos, ',') .. ']' .. (error ~= '' and ',"error":' .. error or '') .. '}')
  for _, kind in ipairs({ 'request', 'input', 'events' }) do redis.call('PEXPIRE', key(kind, id), ttlMs) end
end
