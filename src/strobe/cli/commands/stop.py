"""Stop the web pages that strobe start started."""

import argparse
from typing import TYPE_CHECKING

from strobe.cli.opening import whole_number
from strobe.errors import UsageError
from strobe.messages import localized

if TYPE_CHECKING:
    from strobe.web.instances import Instance


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=whole_number, metavar="N", help=localized("cli/stop.port"))
    parser.add_argument("--all", action="store_true", help=localized("cli/stop.all"))


def run(args: argparse.Namespace) -> int:
    for instance in _chosen(args):
        _stop(instance)
    return 0


def _chosen(args: argparse.Namespace) -> "list[Instance]":
    import platform

    from strobe.web.instances import all_noted

    here = [one for one in all_noted() if one.machine == platform.node()]
    if args.port is not None:
        here = [one for one in here if one.port == args.port]
    if not here:
        id = "cli/stop.none" if args.port is None else "cli/stop.none-on-port"
        raise UsageError.of(id, port=args.port)
    alive = [one for one in here if one.is_alive]
    if len(alive) > 1 and not args.all:
        ports = ", ".join(f"--port {one.port} ({one.base_dir})" for one in alive)
        raise UsageError.of("cli/stop.several", ports=ports)
    return here


def _stop(instance: "Instance") -> None:
    from strobe.web.instances import end, log_file, remove

    if not instance.is_alive:
        remove(instance)
        log = log_file(instance.port)
        text = localized("cli/stop.had-ended", port=instance.port, log=log)
    elif end(instance):
        text = localized("cli/stop.stopped", port=instance.port)
    else:
        text = localized("cli/stop.killed", port=instance.port)
    print(f"strobe: {text}")
