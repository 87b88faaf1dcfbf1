-- Takes a request in and puts it into its owner's line, or refuses it before anything is stored.
-- ARGV: 1 id, 2 owner, 3 envelope JSON, 4 the envelope without what is private, kept from the end on, or '', 5 webhook JSON or '',
--       6 the failed request that it asks again for, once, or '', 7 trace or '', 8 of this call: the same command sent again has the same,
--       9 weight, 10 cost, 11 slots, 12 outputs, 13 shape, 14 bytes, 15 priority, 16 timeout ms, 17 start timeout ms, 18 TTL of a result, ms;
--       limits, '' for none: 19 most that wait, 20 '1': only where a worker has the model, 21 most of the owner's that are open,
--       22 most bytes of the owner's; of one that came with something 23 bytes of all of that, and then name and bytes, or where they are, of each
-- Returns: {'admitted', position, possible 0|1, cost of the requests ahead} | {'overloaded', waiting, what they cost} | {'limited', open} |
--          {'over-budget', bytes kept} | {'unserved'} | {'duplicate'}; of a retry also {'retried', id} (before) | {'not-dead', state} |
--          {'not-kept'} | {'missing'}
--- @include "dispatchable"
--- @include "emit-event"
local id, owner, envelope, promptless, webhook, retryOf, trace, admission, weight, cost, slots, outputs, shapeKey, bytes, priority, timeoutMs,
  startTimeoutMs, resultTtlMs, mostQueued, servedOnly, mostOpen, mostBytes = unpack(ARGV)
local request, shares = key('request', id), sharesOf(owner)
local known = redis.call('HGET', request, 'admission')
local function admitted(position)
  return { 'admitted', position or 0, (not position or isServed()) and 1 or 0, position and costAhead(position, shares) or 0 }
end
-- The same submit again, because its reply got lost with the connection; it may have left the queue since.
if known then return known == admission and admitted(positionOf(id, owner, shares)) or { 'duplicate' } end
if retryOf ~= '' then
  local state, retriedAs, stripped, weightBefore = unpack(redis.call('HMGET', key('request', retryOf), 'state', 'retriedAs', 'stripped', 'weight'))
  if state ~= 'failed' then return state and { 'not-dead', state } or { 'missing' } end
  if retriedAs or stripped then return retriedAs and { 'retried', retriedAs } or { 'not-kept' } end
  weight = weightBefore
  redis.call('HSET', key('request', retryOf), 'retriedAs', id)
end
local open, nowMs = mostOpen ~= '' and tonumber(redis.call('HGET', base .. ':open', owner)) or 0, timeMs()
if mostOpen ~= '' and open >= tonumber(mostOpen) then return { 'limited', open } end
-- `open`: the most bytes that open requests may come to; other fields: what ended ones left, by when that goes.
local keptBytes, kept = 0, key('bytes', owner)
local parts = mostBytes ~= '' and redis.call('HGETALL', kept) or {}
for at = 1, #parts, 2 do
  if parts[at] ~= 'open' and tonumber(parts[at]) <= nowMs then redis.call('HDEL', kept, parts[at]) else keptBytes = keptBytes + parts[at + 1] end
end
if mostBytes ~= '' and keptBytes + bytes > tonumber(mostBytes) then return { 'over-budget', keptBytes } end
-- A queue that one owner has filled is full for that owner: everybody has a place for an equal part of it.
local waiting, own = redis.call('ZCARD', waitingKey), shares.last - shares.first + 1
if mostQueued ~= '' and waiting >= tonumber(mostQueued) then
  local owners = shares.lines + (own == 0 and 1 or 0)
  if owners == 1 or own >= math.floor(mostQueued / owners) then return { 'overloaded', waiting, costAhead(waiting, shares) } end
end
if servedOnly == '1' and not isServed() then return { 'unserved' } end

local order = priority * 4294967296 + redis.call('INCR', base .. ':arrivals')
joinLine({ id = id, owner = owner, order = order, cost = cost, weight = weight, createdAtMs = nowMs }, shares)
local position = positionOf(id, owner, shares)
local optional = {}
for field, value in pairs({ webhook = webhook, retryOf = retryOf, trace = trace, attached = ARGV[23] or '' }) do
  if value ~= '' then optional[#optional + 1], optional[#optional + 2] = field, value end
end
redis.call('HSET', request, 'state', 'queued', 'owner', owner, 'weight', weight, 'cost', cost, 'slots', slots,
  'outputs', outputs, 'shapeKey', shapeKey, 'bytes', bytes, 'attempts', 0, 'order', order, 'sequence', 1,
  'createdAtMs', nowMs, 'sinceMs', nowMs, 'deadlineMs', nowMs + timeoutMs, 'startDeadlineMs', nowMs + startTimeoutMs,
  'resultTtlMs', resultTtlMs, 'position', position, 'admission', admission, unpack(optional))
redis.call('SET', key('input', id), envelope)
if promptless ~= '' then redis.call('SET', key('promptless', id), promptless) end
if ARGV[23] then redis.call('HSET', key('inputs', id), unpack(ARGV, 24)) end
redis.call('HINCRBY', base .. ':open', owner, 1)
if redis.call('HINCRBY', kept, 'open', bytes) == tonumber(bytes) then redis.call('PERSIST', kept) end
redis.call('ZADD', base .. ':deadlines', nowMs + startTimeoutMs, id)
-- Nobody is waked where nothing is free: who becomes free says so. With the look that a former would begin with, where that can only come
-- to this request and an idle worker.
if tonumber(redis.call('HGET', roomKey, 'free') or 0) > 0 then
  local look = waiting == 0 and redis.call('EXISTS', listKey('idle')) == 1 and lookAround(1, 1, 0)
  redis.call('PUBLISH', base .. ':wakeup', look and #look[4] > 0 and cjson.encode(look) or 'admitted')
end
return admitted(position)
