"""A worker that does as it is told, for tests of those who depend on workers."""

import os
import sys
import time

from strobe.web import wire

HEAD = {"status": 200, "type": "application/json", "file_name": "", "is_packed": False}


def main() -> None:
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    while (message := wire.read(sys.stdin.buffer)) is not None:
        told, _ = message
        what = told["question"]
        if what == "die":
            os._exit(7)
        if what == "eat":
            eaten = bytearray(told["bytes"])
            eaten[::4096] = b"x" * len(eaten[::4096])
            time.sleep(60)
        if what == "sleep":
            out.write(wire.pack({"progress": {"what": "sleeping", "done": 1, "of": 2}}))
            time.sleep(told["seconds"])
        if what == "pieces":
            out.write(wire.pack({**HEAD, "last": False}, b"0"))
            for number in range(1, told["count"]):
                out.write(wire.pack({"piece": True, "last": False}, str(number % 10).encode()))
            out.write(wire.pack({"piece": True, "last": True}))
            continue
        if what == "open":
            out.write(wire.pack({"opened": True}))
        out.write(wire.pack({**HEAD, "last": True}, str(os.getpid()).encode()))
