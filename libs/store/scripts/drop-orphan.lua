-- Takes an id out of the queue's indexes whose request is no more, because no janitor ended it in its time.
-- KEYS: 1 base   ARGV: 1 id
-- Returns: 1 dropped | 0 the request is there
local base = KEYS[1]
--- @include "keys"
--- @include "queue-order"
local id = ARGV[1]
if redis.call('EXISTS', key('request', id)) == 1 then return 0 end
redis.call('ZREM', queuedKey, id)
redis.call('ZREM', deadlinesKey, id)
for _, owner in ipairs(redis.call('SMEMBERS', linesKey)) do
  redis.call('ZREM', lineKey(owner), id)
  if redis.call('ZCARD', lineKey(owner)) == 0 then redis.call('SREM', linesKey, owner) end
end
return 1
