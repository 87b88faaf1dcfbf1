-- Deletes an API key.
-- KEYS: 1 hash of all stored keys
-- ARGV: 1 id of the key, 2 id of this change
-- Returns: 1, or 0 if there is no such key
if ARGV[1] == 'version' or redis.call('HDEL', base, ARGV[1]) == 0 then return 0 end
redis.call('HSET', base, 'version', ARGV[2])
return 1
