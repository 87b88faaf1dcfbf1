-- Mends a key that outlived its owner, if it is one, in the same step as it looks: an owner may end or come back at any moment.
-- ARGV: 1 'worker' | 'request', which the key belongs to, 2 id of that, 3 name of the key behind the base, 4 TTL, ms
-- Returns: 'deleted' (of a worker that is no more) | 'repaired' (it had no TTL, though its request has one or is gone) | ''
local of, id, found, ttlMs = ARGV[1], ARGV[2], base .. ':' .. ARGV[3], ARGV[4]
if of == 'worker' then
  return redis.call('EXISTS', key(of, id)) == 0 and redis.call('DEL', found) == 1 and 'deleted' or ''
end
-- An open request and what belongs to it have none.
if redis.call('PTTL', found) ~= -1 or redis.call('PTTL', key(of, id)) == -1 then return '' end
redis.call('PEXPIRE', found, ttlMs)
return 'repaired'
