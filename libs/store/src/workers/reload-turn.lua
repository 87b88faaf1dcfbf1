-- Whose turn it is to load the model anew: one worker of a model at a time.
-- ARGV: 1 incarnation, 2 ms that the turn lasts unless it is taken again, or 0 to end it
-- Returns: 1 when the turn is the caller's (or was, and is over) | 0 when it is another's
local turn = base .. ':reloading'
local holder = redis.call('GET', turn)
if holder and holder ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('DEL', turn) else redis.call('SET', turn, ARGV[1], 'PX', ARGV[2]) end
return 1
