"""A worker that does what its job says, for tests of the code that depends on workers."""

import os
import sys
import time

from strobe.web.answering import wire

HEAD = {"status": 200, "media_type": "application/json", "file_name": "", "is_packed": False}


def main() -> None:
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    while (message := wire.read(sys.stdin.buffer)) is not None:
        job, _ = message
        what = job["question"]
        if what == "die":
            os._exit(7)
        if what == "eat":
            eaten = bytearray(job["bytes"])
            eaten[::4096] = b"x" * len(eaten[::4096])
            time.sleep(60)
        if what == "sleep":
            out.write(wire.pack({"progress": {"what": "sleeping", "done": 1, "of": 2}}))
            time.sleep(job["seconds"])
        if what == "pieces":
            out.write(wire.pack({"reply": HEAD, "last": False}, b"0"))
            for number in range(1, job["count"]):
                out.write(wire.pack({"last": False}, str(number % 10).encode()))
            out.write(wire.pack({"last": True}))
            continue
        out.write(wire.pack({"reply": HEAD, "last": True}, str(os.getpid()).encode()))
