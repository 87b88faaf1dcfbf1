-- Takes, renews or releases the restart lock of a model: one worker of a model restarts at a time.
-- ARGV: 1 worker id, 2 TTL of the lock in ms, or 0 to release it
-- Returns: 1 if the caller holds the lock (or released it) | 0 if another worker holds it
local lock = base .. ':restarting'
local holder = redis.call('GET', lock)
if holder and holder ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('DEL', lock) else redis.call('SET', lock, ARGV[1], 'PX', ARGV[2]) end
return 1
