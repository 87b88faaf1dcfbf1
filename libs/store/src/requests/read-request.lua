-- All that a poll shows.
-- ARGV: 1 id, 2 owner, or '*' for ourselves
-- Returns: {{field, value, …}, envelope JSON, position or -1, possible 0|1, cost of the requests ahead, ms until its model should be loaded} | {} (nothing of that owner's is here)
--- @include "fair-order"
--- @include "worker-pool"
local id = ARGV[1]
local owner, input = redis.call('HGET', key('request', id), 'owner'), redis.call('GET', key('input', id))
if not owner or not input or (ARGV[2] ~= '*' and ARGV[2] ~= owner) then return {} end
local position = positionOf(id, owner)
-- Once it is further, the model is there.
local loadedAtMs, done = unpack(redis.call('HMGET', key('request', id), 'loadedAtMs', 'done'))
local loadingMs = tonumber(done or 0) == 0 and math.max(0, (loadedAtMs or 0) - timeMs()) or 0
return { redis.call('HGETALL', key('request', id)), input, position or -1, isServed() and 1 or 0, costAhead(position), loadingMs }
