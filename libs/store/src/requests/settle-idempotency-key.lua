-- What became of the request that a key was claimed for. One that was refused may be sent again with another body.
-- KEYS: 1 record   ARGV: 1 id, 2 'stored' | 'refused', 3 TTL ms
-- Returns: 1 settled | 0 the record is another one by now, or a concurrent send of the same body was stored
local id, state = unpack(redis.call('HMGET', KEYS[1], 'id', 'state'))
if id ~= ARGV[1] or (state == 'stored' and ARGV[2] == 'refused') then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
