-- All that a poll shows.
-- ARGV: 1 id, 2 owner, or '*' for ourselves
-- Returns: {{state, cancel, attempts, created at ms, started, ended, expires, done, total, error JSON, retry of, retried as}, envelope JSON,
--          {facts (JSON) of an output that is there, …}, position or -1, possible 0|1 (of one that does not wait: 1), cost of the requests ahead,
--          ms until its model should be loaded} | {} (nothing of that owner's is here)
--- @include "queue-position"
--- @include "served"
local id, request = ARGV[1], key('request', ARGV[1])
local facts = redis.call('HMGET', request, 'state', 'cancel', 'attempts', 'createdAtMs', 'startedAtMs', 'endedAtMs', 'expiresAtMs', 'done',
  'total', 'error', 'retryOf', 'retriedAs', 'owner', 'outputs', 'output:0', 'loadedAtMs')
local input, state, done, owner, outputs, first, loadedAtMs = redis.call('GET', key('input', id)), facts[1], facts[8], unpack(facts, 13)
if not owner or not input or (ARGV[2] ~= '*' and ARGV[2] ~= owner) then return {} end
local infos = { first or nil }
for index = 1, outputs - 1 do infos[#infos + 1] = redis.call('HGET', request, 'output:' .. index) or nil end
-- Once it is further, the model is there.
local loadingMs = loadedAtMs and tonumber(done or 0) == 0 and math.max(0, loadedAtMs - timeMs()) or 0
local found = { { unpack(facts, 1, 12) }, input, infos, -1, 1, '0', loadingMs }
if state == 'queued' then
  local shares = sharesOf(owner)
  local position = positionOf(id, owner, shares)
  found[4], found[5], found[6] = position or -1, isServed() and 1 or 0, costAhead(position, shares)
end
return found
