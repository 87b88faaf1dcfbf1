-- Takes a request in and puts it into its owner's line, or refuses it before anything is stored.
-- ARGV: 1 id, 2 facts (JSON, requests/stored-facts.ts), 3 envelope JSON, 4 the envelope without what is private, kept from the end on, or '',
--       5 webhook JSON or '', 6 limits (JSON: {"queued", "servedOnly", "open"?, "bytes"?}; none at all for a retry), 7 the failed request
--       that it asks again for, once, or ''
-- Returns: {'admitted', position, possible 0|1, cost of the requests ahead} | {'overloaded', waiting, what they cost} | {'limited', open} |
--          {'over-budget', bytes kept} | {'unserved'} | {'duplicate'}; of a retry also {'retried', id} (before) | {'not-dead', state} |
--          {'not-kept'} | {'missing'}
--- @include "dispatchable"
--- @include "emit-event"
local id, given, limits, retryOf = ARGV[1], cjson.decode(ARGV[2]), cjson.decode(ARGV[6]), ARGV[7]
local owner, request = given.owner, key('request', id)
local known = redis.call('HGET', request, 'admission')
local function admitted(position)
  return { 'admitted', position or 0, (not position or isServed()) and 1 or 0, position and costAhead(position) or 0 }
end
-- The same submit again, because its reply got lost with the connection; it may have left the queue since.
if known then return known == given.admission and admitted(positionOf(id, owner)) or { 'duplicate' } end
if retryOf ~= '' then
  local state, retriedAs, stripped, weight = unpack(redis.call('HMGET', key('request', retryOf), 'state', 'retriedAs', 'stripped', 'weight'))
  if state ~= 'failed' then return state and { 'not-dead', state } or { 'missing' } end
  if retriedAs or stripped then return retriedAs and { 'retried', retriedAs } or { 'not-kept' } end
  given.weight = weight
  redis.call('HSET', key('request', retryOf), 'retriedAs', id)
end
local open, nowMs = tonumber(redis.call('HGET', base .. ':open', owner)) or 0, timeMs()
if limits.open and open >= limits.open then return { 'limited', open } end
-- `open`: the most bytes that open requests may come to; other fields: what ended ones left, by when that goes.
local bytes, kept = 0, key('bytes', owner)
for _, field in ipairs(limits.bytes and redis.call('HKEYS', kept) or {}) do
  if field ~= 'open' and tonumber(field) <= nowMs then redis.call('HDEL', kept, field) else bytes = bytes + redis.call('HGET', kept, field) end
end
if limits.bytes and bytes + given.bytes > limits.bytes then return { 'over-budget', bytes } end
-- A queue that one owner has filled is full for that owner: everybody has a place for an equal part of it.
local waiting, own = redis.call('ZCARD', waitingKey), redis.call('ZCARD', key('line', owner))
if limits.queued and waiting >= limits.queued then
  local owners = (redis.call('HGET', sharesKey, 'lines') or 0) + (own == 0 and 1 or 0)
  if owners == 1 or own >= math.floor(limits.queued / owners) then return { 'overloaded', waiting, costAhead(waiting) } end
end
if limits.servedOnly and not isServed() then return { 'unserved' } end

given.id, given.createdAtMs, given.order = id, nowMs, given.priority * 4294967296 + redis.call('INCR', base .. ':arrivals')
joinLine(given)
local position = positionOf(id, owner)
redis.call('HSET', request, 'state', 'queued', 'owner', owner, 'weight', given.weight, 'cost', given.cost, 'slots', given.slots,
  'outputs', given.outputs, 'shapeKey', given.shapeKey, 'bytes', given.bytes, 'attempts', 0, 'order', given.order, 'sequence', 1,
  'createdAtMs', nowMs, 'sinceMs', nowMs, 'deadlineMs', nowMs + given.timeoutMs, 'startDeadlineMs', nowMs + given.startTimeoutMs,
  'resultTtlMs', given.resultTtlMs, 'position', position, 'admission', given.admission)
for field, value in pairs({ webhook = ARGV[5], retryOf = retryOf, trace = given.trace }) do
  if value ~= '' then redis.call('HSET', request, field, value) end
end
redis.call('SET', key('input', id), ARGV[3])
if ARGV[4] ~= '' then redis.call('SET', key('promptless', id), ARGV[4]) end
redis.call('HINCRBY', base .. ':open', owner, 1)
redis.call('HINCRBY', kept, 'open', given.bytes)
redis.call('PERSIST', kept)
redis.call('ZADD', base .. ':deadlines', nowMs + given.startTimeoutMs, id)
-- With the look that a former would begin with, where that can only come to this request and an idle worker.
local look = waiting == 0 and redis.call('EXISTS', listKey('idle')) == 1 and lookAround(1, 1, 0)
redis.call('PUBLISH', base .. ':wakeup', look and #look[4] > 0 and cjson.encode(look) or 'admitted')
return admitted(position)
