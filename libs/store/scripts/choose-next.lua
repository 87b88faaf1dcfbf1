-- Moves the requests that are next in the fair order to BullMQ's wait list, which it empties before its prioritized
-- set, first in first out. What was recovered from a stall, or chosen by a former that died, stands there already and
-- counts; what other formers have chosen and are taking at this moment does not.
-- KEYS: 1 base   ARGV: 1 how many jobs the caller takes next, 2 a name for that
-- Returns: a member of `takings`, to be removed when they are taken
local base = KEYS[1]
--- @include "keys"
--- @include "queue-order"
-- Taking is one round trip; a former that needs longer has died.
local takingMs = 1000
local wait, prioritized, takings = base .. ':queue:wait', base .. ':queue:prioritized', base .. ':takings'
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local standing, wanted, chosen, orphans = redis.call('LLEN', wait), tonumber(ARGV[1]), {}, {}
local taking = ARGV[1] .. ' ' .. ARGV[2]
redis.call('ZREMRANGEBYSCORE', takings, '-inf', nowMs)
for _, other in ipairs(redis.call('ZRANGE', takings, 0, -1)) do
  if other ~= taking then standing = standing - string.match(other, '^%d+') end
end
standing = math.max(0, standing)
redis.call('ZADD', takings, nowMs + takingMs, taking)
redis.call('PEXPIRE', takings, takingMs)
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
  leaveLine(id, 'chosen')
  redis.call('ZADD', queuedKey, firstInLine + redis.call('HINCRBY', sharesKey, 'chosen', 1), id)
end
return taking
