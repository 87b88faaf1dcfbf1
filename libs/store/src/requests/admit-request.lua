-- Adds a request to the queue, or refuses it before anything is stored.
-- ARGV: 1 id, 2 owner, 3 envelope JSON, 4 envelope JSON without private fields, which replaces it at the end, or ''
--       5 webhook JSON or '', 6 id of the failed request that this one retries, or '', 7 trace or ''
--       8 id of this call (a resent command has the same), 9 weight, 10 cost, 11 slots, 12 outputs, 13 shape
--       14 priority, 15 timeout ms, 16 start timeout ms, 17 result TTL ms
--       limits, '' for none: 18 max queue length, 19 '1' to refuse if no worker serves the model
--       20 max open requests of the owner, 21 max bytes of the owner, 22 those that it stores in other shards
--       23 max attempts, 24 kind, 25 excerpt of the prompt or ''
--       if it has attachments: 26 their total bytes, then for each its name and its bytes or reference
-- Returns: {'admitted', position, possible 0|1, cost of the requests ahead} | {'overloaded', queue length, its cost} |
--          {'limited', open} | {'over-budget', stored bytes} | {'unserved'} | {'duplicate'} | {'forgotten'} (model)
--          for a retry also {'retried', id} (earlier) | {'not-dead', state} | {'not-kept'} | {'missing'}
--- @include "dispatchable"
--- @include "emit-event"
--- @include "owner-bytes"
--- @include "request-list"
local id, owner, envelope, promptless, webhook, retryOf, trace, admission, weight, cost, slots, outputs, shapeKey,
  priority, timeoutMs, startTimeoutMs, resultTtlMs, maxQueued, servedOnly, maxOpen, maxBytes, bytesElsewhere,
  maxAttempts, kind, excerpt, attached = unpack(ARGV)
local request, shares = key('request', id), sharesOf(owner)
local known = redis.call('HGET', request, 'admission')
local function admitted(position)
  if not position then return { 'admitted', 0, 1, 0 } end
  return { 'admitted', position, isServed() and 1 or 0, costAhead(position, shares) }
end
-- The same call was sent again after a lost reply; the request may have left the queue since.
if known then return known == admission and admitted(positionOf(id, owner, shares)) or { 'duplicate' } end
if redis.call('EXISTS', base .. ':forgotten') == 1 then return { 'forgotten' } end
if retryOf ~= '' then
  local state, retriedAs, stripped, weightBefore, maxBytesBefore, excerptBefore = unpack(redis.call('HMGET',
    key('request', retryOf), 'state', 'retriedAs', 'stripped', 'weight', 'ownerMaxBytes', 'excerpt'))
  if state ~= 'failed' then return state and { 'not-dead', state } or { 'missing' } end
  if retriedAs or stripped then return retriedAs and { 'retried', retriedAs } or { 'not-kept' } end
  weight, maxBytes = weightBefore, maxBytesBefore or ''
  excerpt = promptless == '' and excerptBefore or ''
  redis.call('HSET', key('request', retryOf), 'retriedAs', id)
end
local open, nowMs = maxOpen ~= '' and tonumber(redis.call('HGET', base .. ':open', owner)) or 0, timeMs()
if maxOpen ~= '' and open >= tonumber(maxOpen) then return { 'limited', open } end
local bytes = requestBytes + #envelope + #promptless + #webhook + #excerpt + (attached or 0)
local total = maxBytes ~= '' and settleBytes(owner)
local work = promptless ~= '' and #envelope + (attached or 0) or 0
if retryOf == '' and maxBytes ~= '' and total + bytesElsewhere + bytes > tonumber(maxBytes) then
  return { 'over-budget', total }
end
-- A full queue refuses only owners that hold at least their equal share of it.
local waiting, own = redis.call('ZCARD', waitingKey), shares.last - shares.first + 1
if maxQueued ~= '' and waiting >= tonumber(maxQueued) then
  local owners = shares.owners + (own == 0 and 1 or 0)
  if owners == 1 or own >= math.floor(maxQueued / owners) then
    return { 'overloaded', waiting, costAhead(waiting, shares) }
  end
end
if servedOnly == '1' and not isServed() then return { 'unserved' } end

local order = priority * 4294967296 + redis.call('INCR', base .. ':arrivals')
enqueue({ id = id, owner = owner, order = order, cost = cost, weight = weight, createdAtMs = nowMs }, shares)
local position = positionOf(id, owner, shares)
local optional = {}
for field, value in pairs({ webhook = webhook, retryOf = retryOf, trace = trace, attached = attached or '',
  promptless = promptless ~= '' and '1' or '', ownerMaxBytes = maxBytes, excerpt = excerpt }) do
  if value ~= '' then optional[#optional + 1], optional[#optional + 2] = field, value end
end
redis.call('HSET', request, 'state', 'queued', 'owner', owner, 'weight', weight, 'cost', cost, 'slots', slots,
  'outputs', outputs, 'shapeKey', shapeKey, 'bytes', bytes, 'work', work, 'attempts', 0, 'maxAttempts', maxAttempts,
  'order', order, 'kind', kind,
  'sequence', 1, 'createdAtMs', nowMs, 'sinceMs', nowMs, 'deadlineMs', nowMs + timeoutMs,
  'startDeadlineMs', nowMs + startTimeoutMs, 'resultTtlMs', resultTtlMs, 'position', position,
  'admission', admission, unpack(optional))
redis.call('SET', key('input', id), envelope)
if promptless ~= '' then redis.call('SET', key('promptless', id), promptless) end
if attached then redis.call('HSET', key('inputs', id), unpack(ARGV, 27)) end
local isFirst = redis.call('HINCRBY', base .. ':open', owner, 1) == 1
if maxBytes ~= '' then redis.call('HINCRBY', key('bytes', owner), 'total', bytes) end
if isFirst then redis.call('PERSIST', key('bytes', owner)) end
redis.call('ZADD', base .. ':deadlines', nowMs + startTimeoutMs, id)
-- It ends by its deadline; the end sets the exact time.
listRequest(id, owner, nowMs, nowMs + timeoutMs + resultTtlMs)
-- If no slot is free, skip the wake-up: workers publish one when they free a slot. If this is the only queued request
-- and a worker is idle, the message holds the state that a former would read first.
if tonumber(redis.call('HGET', capacityKey, 'free') or 0) > 0 then
  local snapshot = waiting == 0 and redis.call('EXISTS', listKey('idle')) == 1 and readDispatchable(1, 1)
  redis.call('PUBLISH', base .. ':wakeup', snapshot and #snapshot[4] > 0 and cjson.encode(snapshot) or 'admitted')
end
return admitted(position)
