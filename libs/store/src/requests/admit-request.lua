-- Takes a request in, or refuses it before anything is stored.
-- KEYS: 1 base
-- ARGV: 1 id, 2 facts (JSON, requests/stored-facts.ts), 3 input envelope JSON, 4 the envelope without what is private, to be kept from
--       the end on, or '', 5 webhook JSON or '', 6 most queued requests, 7 '1' to refuse a model without a worker,
--       8 most open requests of the owner here, or '', 9 most bytes of the owner here, or ''
-- Returns: {'admitted', position, possible 0|1, cost of the requests ahead} | {'overloaded', waiting} | {'limited', open} |
--          {'over-budget', bytes kept} | {'unserved'} | {'duplicate'}
local base = KEYS[1]
--- @include "keys"
--- @include "worker-pool"
--- @include "store-request"
local id, given = ARGV[1], cjson.decode(ARGV[2])
local function admitted(position)
  return { 'admitted', position, isServed() and 1 or 0, costAhead(position) }
end
local known = redis.call('GET', key('input', id))
if known then
  -- The same submit again, because its reply got lost with the connection.
  local position = known == ARGV[3] and positionOf(id, given.owner)
  return position and admitted(position) or { 'duplicate' }
end
local open = tonumber(redis.call('HGET', base .. ':open', given.owner)) or 0
if ARGV[8] ~= '' and open >= tonumber(ARGV[8]) then return { 'limited', open } end
if ARGV[9] ~= '' then
  local bytes = bytesOf(given.owner, timeMs())
  if bytes + given.bytes > tonumber(ARGV[9]) then return { 'over-budget', bytes } end
end
-- A queue that one owner has filled is full for that owner: everybody has a place for an equal part of it.
local waiting, most, own = redis.call('ZCARD', waitingKey), tonumber(ARGV[6]), redis.call('ZCARD', key('line', given.owner))
if waiting >= most then
  local owners = (redis.call('HGET', sharesKey, 'lines') or 0) + (own == 0 and 1 or 0)
  if owners == 1 or own >= math.floor(most / owners) then return { 'overloaded', waiting } end
end
if ARGV[7] == '1' and not isServed() then return { 'unserved' } end
return admitted(storeRequest(id, given, ARGV[3], ARGV[4], ARGV[5]))
