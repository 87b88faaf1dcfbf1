-- Pins an ended request, so that it expires later, or unpins it.
-- ARGV: 1 id, 2 owner, 3 '1' to pin | '0' to unpin
-- Returns: {'done', expiry ms} | {'open', state} | {'missing'}
--- @include "emit-event"
--- @include "owner-bytes"
--- @include "request-list"
-- An unpinned request stays for at least a minute, for clients that have just read its expiry.
local minTtlMs = 60000
local id, owner, isPin, request = ARGV[1], ARGV[2], ARGV[3] == '1', key('request', ARGV[1])
local fields = readFields(id, { 'state', 'owner', 'outputs', 'bytes', 'ownerMaxBytes', 'createdAtMs', 'endedAtMs',
  'expiresAtMs', 'resultTtlMs', 'pinned' })
if fields.owner ~= owner then return { 'missing' } end
if not fields.endedAtMs then return { 'open', fields.state } end
if isPin == (fields.pinned == '1') then return { 'done', fields.expiresAtMs } end
local field = bytesField(fields)
local ttlMs = math.max(fields.resultTtlMs, isPin and pinnedTtlMs or 0)
fields.pinned = isPin and '1' or false
-- Neither pins in turns nor a late unpin make it stay longer than one pin.
local expiresAtMs = fields.endedAtMs + ttlMs
if isPin then fields.expiresAtMs = math.max(expiresAtMs, fields.expiresAtMs)
else fields.expiresAtMs = math.min(math.max(expiresAtMs, timeMs() + minTtlMs), fields.expiresAtMs) end
redis.call('HSET', request, 'expiresAtMs', fields.expiresAtMs)
if isPin then redis.call('HSET', request, 'pinned', '1') else redis.call('HDEL', request, 'pinned') end
local keys = { request, key('input', id), key('inputs', id), key('events', id) }
for index = 0, fields.outputs - 1 do keys[#keys + 1] = key('output', id) .. ':' .. index end
for _, each in ipairs(keys) do redis.call('PEXPIRE', each, fields.expiresAtMs - timeMs()) end
local lastExpiryMs = listRequest(id, owner, fields.createdAtMs, fields.expiresAtMs)
local storedBytes = key('bytes', owner)
if fields.ownerMaxBytes and redis.call('HEXISTS', storedBytes, field) == 1 then
  redis.call('HINCRBY', storedBytes, field, 0 - fields.bytes)
  redis.call('HINCRBY', storedBytes, bytesField(fields), fields.bytes)
  -- Without a TTL, the owner has open requests.
  if redis.call('PTTL', storedBytes) ~= -1 then redis.call('PEXPIRE', storedBytes, lastExpiryMs - timeMs()) end
end
return { 'done', string.format('%.0f', fields.expiresAtMs) }
