-- The one request that an idempotency key stands for: the first body claims it, the same body finds it again. What became of the
-- request is said later; when it was refused, another body may claim the key.
-- KEYS: 1 record   ARGV: 1 'claimed' | 'stored' | 'refused', 2 id of the request, 3 TTL ms, then of a claim 4 fingerprint of the body, 5 an id
--       whose time is over, or ''
-- Returns: {'mine', id, its state before} (of a claim: submit it under this id; it may be there already) |
--          {'conflict', id, its state} (another body has claimed the key)
local fingerprint, id, state = unpack(redis.call('HMGET', KEYS[1], 'fingerprint', 'id', 'state'))
local function write(newId, newFingerprint)
  redis.call('HSET', KEYS[1], 'id', newId, 'fingerprint', newFingerprint, 'state', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return { 'mine', newId, newId == id and state or ARGV[1] }
end
if ARGV[1] ~= 'claimed' then
  -- Unless the record is another one by now, or a concurrent send of the same body was stored.
  return id == ARGV[2] and (state ~= 'stored' or ARGV[1] == 'stored') and write(id, fingerprint) or { 'mine', ARGV[2], state }
end
if not id or id == ARGV[5] or (fingerprint ~= ARGV[4] and state == 'refused') then return write(ARGV[2], ARGV[4]) end
if fingerprint ~= ARGV[4] then return { 'conflict', id, state } end
-- Sent again after a refusal: until that is settled it is a claim like the first.
return state == 'refused' and write(id, fingerprint) or { 'mine', id, state }
