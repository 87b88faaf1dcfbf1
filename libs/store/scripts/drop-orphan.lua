-- Takes an id out of the queue's indexes whose request is no more, because no janitor ended it in its time.
-- KEYS: 1 base   ARGV: 1 id
-- Returns: 1 dropped | 0 the request is there
local base = KEYS[1]
--- @include "keys"
--- @include "queue-order"
if redis.call('EXISTS', key('request', ARGV[1])) == 1 then return 0 end
dropOrphan(ARGV[1])
return 1
