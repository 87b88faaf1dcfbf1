-- Stored bytes, counted in the script that stores or deletes them. Of a request: fields `bytes` (all that its owner
-- stored in it) and `work` (those that its end deletes). Of an owner: `total`, and the bytes of ended requests by the
-- time at which they expire. Requests that were admitted without a limit are not counted.

-- Memory that a request takes beside its values, for fields and keys (owner-bytes.test.ts measures it).
local requestBytes = 6000

-- Returns the size of the file that a value refers to (byte-stores/byte-store.ts), or nil. A text of a client that
-- looks like a reference counts with at most 1 KB less than it has, and cannot count so much that sums overflow.
local function sizeOfFile(value)
  local from, to = string.match(value, '^%zat (%d+) (%d+) ')
  if not from or #value > 1024 or #to > 12 then return nil end
  return tonumber(to) >= tonumber(from) and to - from or nil
end

local function sizeOf(value) return sizeOfFile(value) or #value end

-- Counts bytes of a request; `countOfOwner` adds them to the total later, once for all writes of a call.
-- fields: `bytes`, `work`, `ownerMaxBytes` of its hash; emitEvent writes them back
local function countBytes(fields, bytes, isWork)
  if not fields.ownerMaxBytes then return end
  fields.bytes, fields.uncounted = fields.bytes + bytes, (fields.uncounted or 0) + bytes
  if isWork then fields.work = fields.work + bytes end
end

-- Subtracts expired results from an owner's total and returns it.
local function settleBytes(owner)
  local stored, total, expired, gone = key('bytes', owner), 0, 0, {}
  local fields = redis.call('HGETALL', stored)
  for at = 1, #fields, 2 do
    local untilMs = tonumber(fields[at])
    if not untilMs then
      total = tonumber(fields[at + 1])
    elseif untilMs <= timeMs() then
      gone[#gone + 1], expired = fields[at], expired + fields[at + 1]
    end
  end
  if not gone[1] then return total end
  redis.call('HDEL', stored, unpack(gone))
  -- `0 - x`: Redis before 7.2 does not parse "-0".
  return redis.call('HINCRBY', stored, 'total', 0 - expired)
end

-- Returns whether a request's owner is over its limit. total: as stored, with expired results.
local function isOverLimit(fields, total)
  local max = tonumber(fields.ownerMaxBytes)
  return tonumber(total or 0) > max and settleBytes(fields.owner) > max
end

-- Adds what a request stored to its owner's total. Returns whether the owner is over its limit.
local function countOfOwner(fields)
  local bytes = fields.uncounted or 0
  fields.uncounted = 0
  return bytes ~= 0 and isOverLimit(fields, redis.call('HINCRBY', key('bytes', fields.owner), 'total', bytes))
end

-- Returns the field of results that expire at `expiresAtMs`, rounded up to a multiple of 1/8 of the TTL (the second
-- return value).
local function expiryBucket(expiresAtMs, ttlMs)
  local part = math.ceil(ttlMs / 8)
  return math.ceil(expiresAtMs / part) * part, part
end

-- A pinned request expires this long after its end, as with the largest RESULT_TTL_S.
local pinnedTtlMs = 2592000000
-- Returns the field that has the bytes of an ended request. fields: of its hash.
local function bytesField(fields)
  return (expiryBucket(fields.expiresAtMs, fields.pinned and pinnedTtlMs or fields.resultTtlMs))
end

-- Returns the error of a request that failed because its owner is over its limit.
local function tooManyBytes(fields)
  return '{"code":"too_many_bytes","message":"The requests of this key store more than ' .. fields.ownerMaxBytes ..
    ' bytes, which is its limit; wait for results to expire."}'
end
