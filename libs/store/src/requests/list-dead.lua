-- What failed lately and was neither retried nor dropped, newest first.
-- KEYS: 1 base   ARGV: 1 the most
-- Returns: {{id, failed at ms, error JSON, owner or '', attempts or '', 1 when what it asked for is kept | 0}, …}
local base = KEYS[1]
--- @include "keys"
local dead, listed = {}, redis.call('ZRANGE', base .. ':dead', 0, ARGV[1] - 1, 'REV', 'WITHSCORES')
for position = 1, #listed, 2 do
  local id = listed[position]
  local owner, attempts, stripped = unpack(redis.call('HMGET', key('request', id), 'owner', 'attempts', 'stripped'))
  dead[#dead + 1] = { id, listed[position + 1], redis.call('HGET', base .. ':dead:reasons', id), owner or '', attempts or '',
    owner and not stripped and 1 or 0 }
end
return dead
