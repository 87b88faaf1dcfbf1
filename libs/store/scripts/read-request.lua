-- All that a poll shows, in one round trip.
-- KEYS: 1 base   ARGV: 1 id, 2 owner
-- Returns: {'found', {field, value, …}, rank or -1, possible 0|1, cost of the requests ahead} | {'gone'} | {'unknown'} (also when it is somebody else's)
local base = KEYS[1]
--- @include "keys"
--- @include "is-served"
--- @include "cost-ahead"
--- @include "ownership"
local id = ARGV[1]
local refused = ownershipRefusal(id, ARGV[2])
if refused then return { refused } end
local fields = redis.call('HGETALL', key('request', id))
local rank = redis.call('ZRANK', queuedKey, id)
return { 'found', fields, rank or -1, isServed() and 1 or 0, costAhead(rank) }
