-- The key names of src/keys.ts, for scripts that find out only inside which request or worker they touch.
-- `base` is `<prefix>:{<model>}`: one hash tag, so all of them live in one slot. src/keys.test.ts compares both.
local function key(kind, id)
  return base .. ':' .. kind .. ':' .. id
end
local function lockKey(id)
  return base .. ':queue:' .. id .. ':lock'
end
local queuedKey, deadlinesKey = base .. ':queued', base .. ':deadlines'
local idleKey, busyKey = base .. ':workers:idle', base .. ':workers:busy'
local loadingKey, drainingKey = base .. ':workers:loading', base .. ':workers:draining'
local reservedKey = base .. ':workers:reserved'
local sweptKey = base .. ':swept'
