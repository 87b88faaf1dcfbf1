-- Removes all that is kept of a dead request.
-- KEYS: 1 base   ARGV: 1 id
-- Returns: {'dropped'} | {'not-dead', state} | {'missing'}
local base = KEYS[1]
--- @include "keys"
local id = ARGV[1]
local state, outputs = unpack(redis.call('HMGET', key('request', id), 'state', 'outputs'))
if state and state ~= 'failed' then return { 'not-dead', state } end
local wasListed = redis.call('ZREM', base .. ':dead', id)
redis.call('HDEL', base .. ':dead:reasons', id)
for index = 0, (outputs or 0) - 1 do redis.call('DEL', key('output', id) .. ':' .. index) end
redis.call('DEL', key('request', id), key('input', id), key('events', id))
-- What has failed is listed for longer than it is kept.
return { (state or wasListed == 1) and 'dropped' or 'missing' }
