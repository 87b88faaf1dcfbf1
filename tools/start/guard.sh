# Runs a program (redis-server) and stops it when the launcher ends: our standard input closes then.
# sh guard.sh <program> <arguments…>. Exits with the program's exit code.
exec 3<&0
"$@" 3<&- </dev/null &
program=$!
# On SIGTERM redis-server saves its data before it ends.
stop() { kill -TERM "$program" 2>/dev/null; }
trap stop TERM INT
{ read -r _ <&3; stop; } &
# A signal interrupts `wait` without ending the program: wait again.
while wait "$program"; code=$?; kill -0 "$program" 2>/dev/null; do :; done
exit "$code"
