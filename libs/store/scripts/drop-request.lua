-- Removes all that is kept of a dead request but the mark that it was.
-- KEYS: 1 base   ARGV: 1 id, 2 gone TTL ms
-- Returns: {'dropped'} (its job is the caller's to remove) | {'not-dead', state} | {'gone'} | {'unknown'}
local base = KEYS[1]
--- @include "keys"
--- @include "ownership"
local id = ARGV[1]
local request = key('request', id)
local refused = ownershipRefusal(id, '*')
-- BullMQ keeps failed jobs longer than we keep requests.
if refused then return { redis.call('ZSCORE', base .. ':queue:failed', id) and 'dropped' or refused } end
local state, owner, outputs = unpack(redis.call('HMGET', request, 'state', 'owner', 'outputs'))
if state ~= 'failed' then return { 'not-dead', state } end
for index = 0, outputs - 1 do
  redis.call('DEL', key('output', id) .. ':' .. index, key('checkpoint', id) .. ':' .. index)
end
redis.call('DEL', request, key('events', id))
redis.call('SET', key('gone', id), owner, 'PX', ARGV[2])
return { 'dropped' }
