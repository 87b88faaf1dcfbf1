-- Deletes an ended request and subtracts its bytes from the owner's total.
-- ARGV: 1 id
-- Returns: 1 | 0 (it had expired)
--- @include "owner-bytes"
--- @include "request-list"
local id, request = ARGV[1], key('request', ARGV[1])
local owner, outputs, bytes, maxBytes, ttlMs, expiresAtMs = unpack(redis.call('HMGET', request,
  'owner', 'outputs', 'bytes', 'ownerMaxBytes', 'resultTtlMs', 'expiresAtMs'))
if expiresAtMs and maxBytes then
  local storedBytes, bucket = key('bytes', owner), expiryBucket(expiresAtMs, ttlMs)
  if redis.call('HEXISTS', storedBytes, bucket) == 1 then
    for _, field in ipairs({ bucket, 'total' }) do redis.call('HINCRBY', storedBytes, field, 0 - bytes) end
  end
end
if owner then unlistRequest(id, owner) end
for index = 0, (outputs or 0) - 1 do redis.call('DEL', key('output', id) .. ':' .. index) end
return redis.call('DEL', request, key('input', id), key('inputs', id), key('events', id)) > 0 and 1 or 0
