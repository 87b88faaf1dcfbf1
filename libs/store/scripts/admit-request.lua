-- Takes a request in, or refuses it before anything is stored.
-- KEYS: 1 base
-- ARGV: 1 id, 2 now ms, 3 most queued requests, 4 '1' to refuse a model without a live worker, 5 envelope JSON,
--       6 slots, 7 priority, 8 deadline ms, 9 start deadline ms, 10 result TTL ms, 11 gone TTL ms, 12 owner, 13 weight,
--       14 cost, 15 most open requests of the owner here, or '', 16 the envelope without prompts, to be kept from the end on, or '',
--       17 webhook JSON or '', 18 outputs
-- Returns: {'admitted', position, possible 0|1, cost of the requests ahead} | {'overloaded', waiting} | {'limited', open} | {'unserved'} | {'duplicate', state}
local base = KEYS[1]
--- @include "keys"
--- @include "emit-event"
--- @include "is-served"
--- @include "queue-order"
--- @include "store-request"
--- @include "cost-ahead"
local id, nowMs, owner = ARGV[1], tonumber(ARGV[2]), ARGV[12]
local request = key('request', id)
local known = redis.call('HGET', request, 'envelope')
if known then
  -- The same submit again, because its reply got lost with the connection: its caller has yet to add the job.
  local rank = known == ARGV[5] and redis.call('ZRANK', queuedKey, id)
  return rank and { 'admitted', rank, isServed() and 1 or 0, costAhead(rank) } or { 'duplicate', redis.call('HGET', request, 'state') }
end
local open = redis.call('SCARD', key('open', owner))
if ARGV[15] ~= '' and open >= tonumber(ARGV[15]) then return { 'limited', open } end
-- A queue that one owner has filled is full for that owner: everybody has a place for an equal part of it.
local waiting, most = redis.call('ZCARD', queuedKey), tonumber(ARGV[3])
if waiting >= most then
  local owners = redis.call('SCARD', linesKey) + 1 - redis.call('SISMEMBER', linesKey, owner)
  if owners == 1 or redis.call('ZCARD', lineKey(owner)) >= math.floor(most / owners) then return { 'overloaded', waiting } end
end
local possible = isServed()
if ARGV[4] == '1' and not possible then return { 'unserved' } end

local position = storeRequest(id, {
  nowMs = nowMs, envelope = ARGV[5], slots = ARGV[6], outputs = ARGV[18], priority = tonumber(ARGV[7]), deadlineMs = tonumber(ARGV[8]),
  startDeadlineMs = tonumber(ARGV[9]), resultTtlMs = tonumber(ARGV[10]), goneTtlMs = tonumber(ARGV[11]), owner = owner,
  weight = ARGV[13], cost = ARGV[14], promptless = ARGV[16], webhook = ARGV[17], retryOf = '' })
return { 'admitted', position, possible and 1 or 0, costAhead(position) }
