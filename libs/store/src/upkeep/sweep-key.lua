-- Repairs a key that outlived its worker or request, checking and changing in one script: either may end or come back
-- any moment.
-- ARGV: 1 'worker' | 'request', which owns the key, 2 id of that, 3 name of the key without the base, 4 TTL ms
-- Returns: 'deleted' (its worker is gone) | 'repaired' (it had no TTL, though its request has one or is gone) | ''
local of, id, found, ttlMs = ARGV[1], ARGV[2], base .. ':' .. ARGV[3], ARGV[4]
if of == 'worker' then
  return redis.call('EXISTS', key(of, id)) == 0 and redis.call('DEL', found) == 1 and 'deleted' or ''
end
-- Keys of an open request have no TTL.
if redis.call('PTTL', found) ~= -1 or redis.call('PTTL', key(of, id)) == -1 then return '' end
redis.call('PEXPIRE', found, ttlMs)
return 'repaired'
