-- All that a poll shows, in one round trip.
-- KEYS: 1 base   ARGV: 1 id
-- Returns: {'found', {field, value, …}, rank or -1, possible 0|1} | {'gone'} | {'unknown'}
local base = KEYS[1]
--- @include "keys"
--- @include "is-served"
local id = ARGV[1]
local fields = redis.call('HGETALL', key('request', id))
if #fields == 0 then return { redis.call('EXISTS', key('gone', id)) == 1 and 'gone' or 'unknown' } end
local rank = redis.call('ZRANK', queuedKey, id)
return { 'found', fields, rank or -1, isServed() and 1 or 0 }
