-- Sends a command to a worker: appends it to the worker's inbox.
-- KEYS: 1 base of the shard
-- ARGV: 1 worker id, 2 command JSON, see `CommandMessage` in send-command.ts
-- Returns: 'sent' | 'unknown'
--- @include "worker-pool"
return sendToWorker(ARGV[1], ARGV[2]) and 'sent' or 'unknown'
