"""Tell which web pages are running, and print their links again.

strobe status                            your servers on this machine
strobe status --json                     the same for programs
"""

import argparse
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strobe.web.instances import Instance

_MEANS = {
    "running": "running",
    "not answering": "its process is there but does not answer; strobe stop ends it",
    "ended": "ended without a word: its machine or somebody else ended it",
    "elsewhere": "on another machine",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    from strobe.web import instances

    found = instances.all_noted()
    states = [one.state for one in found]
    if args.json:
        import json

        told = [_told(one, state) for one, state in zip(found, states, strict=True)]
        print(json.dumps({"ok": True, "servers": told}, ensure_ascii=False))
        return 0
    if not found:
        print("strobe: no server of yours is running; strobe start starts one")
    for one, state in zip(found, states, strict=True):
        where = f" on {one.machine}" if state == "elsewhere" else ""
        print(f"port {one.port}{where}: {_MEANS[state]}")
        print(f"  runs below  {one.base_dir}")
        if state == "ended":
            print(f"  its log     {instances.log_file(one.port)}")
            print(f"  forget it   strobe stop --port {one.port}")
            continue
        print(f"  link        {one.link}")
        print(f"  process     {one.pid}, since {_since(one)}")
    return 0


def _since(instance: "Instance") -> str:
    return f"{datetime.fromtimestamp(instance.started_unix_s):%Y-%m-%d %H:%M:%S}"


def _told(instance: "Instance", state: str) -> dict[str, object]:
    return {
        "port": instance.port, "host": instance.host, "machine": instance.machine,
        "base_dir": instance.base_dir, "pid": instance.pid, "state": state, "link": instance.link,
        "started_unix_s": instance.started_unix_s,
    }  # fmt: skip
