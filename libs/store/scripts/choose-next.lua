-- Moves the requests that are next in the fair order to BullMQ's wait list, which it empties before its prioritized
-- set, first in first out. What stands there already, recovered from a stall or chosen for another former, counts too.
-- KEYS: 1 base   ARGV: 1 how many jobs should stand there
-- Returns: how many do
local base = KEYS[1]
--- @include "keys"
--- @include "queue-order"
local wait, prioritized = base .. ':queue:wait', base .. ':queue:prioritized'
local standing, wanted, chosen = redis.call('LLEN', wait), tonumber(ARGV[1]), {}
local orphans = {}
eachWaiting(function(id)
  if standing + #chosen >= wanted then return false end
  local found = redis.call('EXISTS', key('request', id)) == 1 and chosen or orphans
  found[#found + 1] = id
  return true
end)
-- Their jobs come out when nothing else waits, and find that there is nothing to do.
for _, id in ipairs(orphans) do dropOrphan(id) end
for _, id in ipairs(chosen) do
  redis.call('ZREM', prioritized, id)
  redis.call('LPUSH', wait, id)
  leaveLine(id, true)
  redis.call('ZADD', queuedKey, firstInLine + redis.call('HINCRBY', sharesKey, 'chosen', 1), id)
end
return standing + #chosen
