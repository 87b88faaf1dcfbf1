--- @include "fair-order"
--- @include "emit-event"
--- @include "tally"
--- @include "byte-budget"
-- Moves an open request to a terminal state: one terminal event, out of all indexes, everything with a TTL. A lease stays until its
-- worker lets go. error: JSON object or ''.
local mostDead, deadMs, minuteTtlMs = 1000, 604800000, 600000

-- Where operators look for what failed; kept longer than the request.
local function listDead(id, error, nowMs)
  local deadKey, reasonsKey = base .. ':dead', base .. ':dead:reasons'
  redis.call('ZADD', deadKey, nowMs, id)
  redis.call('HSET', reasonsKey, id, error)
  local function forget(ids)
    if ids[1] then
      redis.call('ZREM', deadKey, unpack(ids))
      redis.call('HDEL', reasonsKey, unpack(ids))
    end
  end
  forget(redis.call('ZRANGE', deadKey, 0, redis.call('ZCARD', deadKey) - mostDead - 1))
  forget(redis.call('ZRANGE', deadKey, '-inf', nowMs - deadMs, 'BYSCORE', 'LIMIT', 0, 100))
end

local function endRequest(id, state, error)
  local request, nowMs = key('request', id), timeMs()
  local resultTtlMs, outputs, owner, cost, weight, createdAtMs = unpack(redis.call('HMGET', request,
    'resultTtlMs', 'outputs', 'owner', 'cost', 'weight', 'createdAtMs'))
  tallyTransition(id, state, nowMs)
  tallyDuration('end:' .. state, nowMs - createdAtMs)
  local minute = key('minute', math.floor(nowMs / 60000))
  redis.call('HINCRBY', minute, state, 1)
  redis.call('PEXPIRE', minute, minuteTtlMs)
  leaveLine({ id = id, owner = owner, cost = cost, weight = weight }, true)
  redis.call('HSET', request, 'state', state, 'endedAtMs', nowMs, 'expiresAtMs', nowMs + resultTtlMs)
  redis.call('HDEL', request, 'worker', 'token', 'cancel')
  if error ~= '' then redis.call('HSET', request, 'error', error) end
  if state == 'failed' then listDead(id, error, nowMs) end
  if redis.call('EXISTS', key('promptless', id)) == 1 then
    redis.call('RENAME', key('promptless', id), key('input', id))
    redis.call('HSET', request, 'stripped', '1')
  end
  redis.call('HINCRBY', base .. ':open', owner, -1)
  if redis.call('HGET', base .. ':open', owner) == '0' then redis.call('HDEL', base .. ':open', owner) end
  redis.call('ZREM', base .. ':deadlines', id)
  keepBytes(id, owner, nowMs, resultTtlMs)
  local infos = {}
  for index = 0, outputs - 1 do
    infos[#infos + 1] = redis.call('HGET', request, 'output:' .. index) or nil
    redis.call('DEL', key('checkpoint', id) .. ':' .. index)
    redis.call('PEXPIRE', key('output', id) .. ':' .. index, resultTtlMs)
  end
  redis.call('DEL', key('previews', id))
  emitEvent(id, '{"type":"' .. state .. '","outputs":[' .. table.concat(infos, ',') .. ']' .. (error ~= '' and ',"error":' .. error or '') .. '}')
  for _, kind in ipairs({ 'request', 'input', 'events' }) do redis.call('PEXPIRE', key(kind, id), resultTtlMs) end
end
