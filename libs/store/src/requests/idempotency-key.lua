-- Maps an idempotency key to one request: the first body claims the key, the same body finds the request again. The
-- outcome of the request is recorded later; if it was refused, another body may claim the key.
-- KEYS: 1 record
-- ARGV: 1 'claimed' | 'stored' | 'refused', 2 id of the request, 3 TTL ms; for a claim also 4 fingerprint of the body,
--       5 id of an expired request, or ''
-- Returns: {'mine', id, its state before} (for a claim: submit it under this id, which may be stored already) |
--          {'conflict', id, its state} (another body has claimed the key)
local fingerprint, id, state = unpack(redis.call('HMGET', KEYS[1], 'fingerprint', 'id', 'state'))
local function write(newId, newFingerprint)
  redis.call('HSET', KEYS[1], 'id', newId, 'fingerprint', newFingerprint, 'state', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return { 'mine', newId, newId == id and state or ARGV[1] }
end
if ARGV[1] ~= 'claimed' then
  -- Keep the record if another request has claimed the key by now, or a concurrent send of the same body was stored.
  local isCurrent = id == ARGV[2] and (state ~= 'stored' or ARGV[1] == 'stored')
  return isCurrent and write(id, fingerprint) or { 'mine', ARGV[2], state }
end
local isFree = not id or id == ARGV[5] or (fingerprint ~= ARGV[4] and state == 'refused')
if isFree then return write(ARGV[2], ARGV[4]) end
if fingerprint ~= ARGV[4] then return { 'conflict', id, state } end
-- The same body is sent again after a refusal: claim the key anew until the outcome is known.
return state == 'refused' and write(id, fingerprint) or { 'mine', id, state }
