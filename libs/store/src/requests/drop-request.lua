-- Removes a request that has ended with all that it left, and counts it no more among what its owner keeps.
-- ARGV: 1 id
-- Returns: 1 | 0 (its time was over)
--- @include "kept-until"
local id, request = ARGV[1], key('request', ARGV[1])
local owner, outputs, written, ttlMs, expiresAtMs = unpack(redis.call('HMGET', request,
  'owner', 'outputs', 'written', 'resultTtlMs', 'expiresAtMs'))
if expiresAtMs then
  local kept, field = key('bytes', owner), keptUntil(expiresAtMs, ttlMs)
  if redis.call('HGET', kept, field) then redis.call('HINCRBY', kept, field, 0 - (written or 0)) end
end
for index = 0, (outputs or 0) - 1 do redis.call('DEL', key('output', id) .. ':' .. index) end
return redis.call('DEL', request, key('input', id), key('inputs', id), key('events', id)) > 0 and 1 or 0
