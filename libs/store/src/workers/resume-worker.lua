-- Lets a worker that an operator has drained take leases again.
-- KEYS: 1 base   ARGV: 1 worker id
-- Returns: 'resumed' (or it was not drained) | 'stopping' (it drains because it stops) | 'unknown'
local base = KEYS[1]
--- @include "keys"
--- @include "worker-pool"
local incarnation, list, stopping, loading = unpack(redis.call('HMGET', key('worker', ARGV[1]), 'incarnation', 'list', 'stopping', 'loading'))
if not incarnation then return 'unknown' end
if stopping then return 'stopping' end
if list ~= 'draining' then return 'resumed' end
if loading then moveWorker(ARGV[1], 'loading') else openWorker(ARGV[1]) end
redis.call('PUBLISH', base .. ':wakeup', 'resumed')
return 'resumed'
