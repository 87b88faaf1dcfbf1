-- Deletes an ended request and subtracts its bytes from the owner's total.
-- ARGV: 1 id
-- Returns: 1 | 0 (it had expired)
--- @include "emit-event"
--- @include "owner-bytes"
--- @include "request-list"
local id, request = ARGV[1], key('request', ARGV[1])
local fields = readFields(id,
  { 'owner', 'outputs', 'bytes', 'ownerMaxBytes', 'resultTtlMs', 'expiresAtMs', 'pinned' })
if fields.expiresAtMs and fields.ownerMaxBytes then
  local storedBytes, field = key('bytes', fields.owner), bytesField(fields)
  if redis.call('HEXISTS', storedBytes, field) == 1 then
    for _, each in ipairs({ field, 'total' }) do redis.call('HINCRBY', storedBytes, each, 0 - fields.bytes) end
  end
end
if fields.owner then unlistRequest(id, fields.owner) end
for index = 0, (fields.outputs or 0) - 1 do redis.call('DEL', key('output', id) .. ':' .. index) end
return redis.call('DEL', request, key('input', id), key('inputs', id), key('events', id)) > 0 and 1 or 0
