-- The one request that an idempotency key stands for: the first body claims it, the same body finds it again.
-- KEYS: 1 record   ARGV: 1 fingerprint of the body, 2 id for a new request, 3 TTL ms, 4 an id whose time is over, or ''
-- Returns: {'mine', id, state} (submit it under this id; it may be there already) | {'conflict', id, state} (another body has claimed the key)
local fingerprint, id, state = unpack(redis.call('HMGET', KEYS[1], 'fingerprint', 'id', 'state'))
if id and id ~= ARGV[4] then
  if fingerprint == ARGV[1] then
    -- Sent again after a refusal: until that is settled it is a claim like the first.
    if state == 'refused' then
      redis.call('HSET', KEYS[1], 'state', 'claimed')
      redis.call('PEXPIRE', KEYS[1], ARGV[3])
    end
    return { 'mine', id, state }
  end
  if state ~= 'refused' then return { 'conflict', id, state } end
end
redis.call('HSET', KEYS[1], 'fingerprint', ARGV[1], 'id', ARGV[2], 'state', 'claimed')
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return { 'mine', ARGV[2], 'claimed' }
