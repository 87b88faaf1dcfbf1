# Runs a program that knows nothing of us (redis-server), and sees to it that it does not outlive whoever started us: our
# standard input ends with them. sh guard.sh <program> <arguments…>. Ends as the program ends.
exec 3<&0
"$@" 3<&- </dev/null &
program=$!
# SIGTERM is what makes a redis-server save its data before it ends.
stop() { kill -TERM "$program" 2>/dev/null; }
trap stop TERM INT
{ read -r _ <&3; stop; } &
# A signal ends a wait, and not the program.
while wait "$program"; code=$?; kill -0 "$program" 2>/dev/null; do :; done
exit "$code"
