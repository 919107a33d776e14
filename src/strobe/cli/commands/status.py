"""List the running web pages and their links."""

import argparse
from datetime import datetime
from typing import TYPE_CHECKING

from strobe.messages import Message, localized, message

if TYPE_CHECKING:
    from strobe.web.instances import Instance


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help=localized("cli/parser.json"))


def run(args: argparse.Namespace) -> int:
    from strobe.web import instances

    found = instances.all_noted()
    states = [one.state for one in found]
    if args.json:
        import json

        servers = [_as_json(one, state) for one, state in zip(found, states, strict=True)]
        print(json.dumps({"ok": True, "servers": servers}, ensure_ascii=False))
        return 0
    if not found:
        print(f"strobe: {localized('cli/status.none')}")
    for one, state in zip(found, states, strict=True):
        print(localized("cli/status.server", port=one.port, state=_state(one, state)))
        print(localized("cli/status.runs", folder=one.base_dir))
        if state == "ended":
            print(localized("cli/status.log", log=instances.log_file(one.port)))
            print(localized("cli/status.remove", port=one.port))
            continue
        print(localized("cli/status.link", link=one.link))
        print(localized("cli/status.process", pid=one.pid, time=_since(one)))
    return 0


def _state(instance: "Instance", state: str) -> Message:
    id = f"cli/status.{state.replace(' ', '-')}"
    return message(id, port=instance.port, machine=instance.machine)


def _since(instance: "Instance") -> str:
    return f"{datetime.fromtimestamp(instance.started_unix_s):%Y-%m-%d %H:%M:%S}"


def _as_json(instance: "Instance", state: str) -> dict[str, object]:
    return {
        "port": instance.port, "host": instance.host, "machine": instance.machine,
        "base_dir": instance.base_dir, "pid": instance.pid, "state": state, "link": instance.link,
        "started_unix_s": instance.started_unix_s,
    }  # fmt: skip
