"""The model without a server: reads a line of requests, makes their images with so many rows at a time (who is done is replaced at once),
and writes a line of what each took, in seconds from the line's coming, and the last image."""

import base64
import json
import sys
import time

from images import Images

images = Images()
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    begun = time.perf_counter()
    job = json.loads(line)
    waiting, rows, seconds, file = job["requests"], [], [], b""
    while waiting or rows:
        free = job["at_once"] - len(rows)
        if free > 0 and waiting:
            started = time.perf_counter()
            for row in (new := images.start(waiting[:free])):
                row.started = begun if job["is_burst"] else started
            waiting, rows = waiting[free:], rows + new
        images.step(rows)
        if done := [row for row in rows if row.done == row.steps]:
            file = images.finish(done)[-1]
            seconds += [time.perf_counter() - row.started for row in done]
            rows = [row for row in rows if row.done < row.steps]
    print(json.dumps({"seconds": seconds, "file": base64.b64encode(file).decode()}), flush=True)
