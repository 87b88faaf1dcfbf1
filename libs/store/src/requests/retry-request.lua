-- Asks again for what a dead request asked for, as a request of its own. Once: who retries the same one again is told what came of it.
-- KEYS: 1 base
-- ARGV: 1 id of the dead request, 2 new id, 3 facts (JSON, requests/stored-facts.ts), 4 envelope JSON, 5 the envelope without what is
--       private, to be kept from the end on, or '', 6 webhook JSON or ''
-- Returns: {'retried', id, 1 when it is new | 0} | {'not-dead', state} | {'not-kept'} | {'missing'}
local base = KEYS[1]
--- @include "keys"
--- @include "store-request"
local dead = key('request', ARGV[1])
local state, retriedAs, stripped, weight = unpack(redis.call('HMGET', dead, 'state', 'retriedAs', 'stripped', 'weight'))
if not state then return { 'missing' } end
if state ~= 'failed' then return { 'not-dead', state } end
if retriedAs then return { 'retried', retriedAs, 0 } end
if stripped then return { 'not-kept' } end
local given = cjson.decode(ARGV[3])
given.weight, given.retryOf = weight, ARGV[1]
storeRequest(ARGV[2], given, ARGV[4], ARGV[5], ARGV[6])
redis.call('HSET', dead, 'retriedAs', ARGV[2])
redis.call('ZREM', base .. ':dead', ARGV[1])
redis.call('HDEL', base .. ':dead:reasons', ARGV[1])
return { 'retried', ARGV[2], 1 }
