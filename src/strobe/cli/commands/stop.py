"""Stop the web pages that strobe start started.

strobe stop                              the only one there is
strobe stop --port 8081                  this one
strobe stop --all                        every one of yours on this machine
"""

import argparse
from typing import TYPE_CHECKING

from strobe.cli.opening import whole_number
from strobe.errors import UsageError

if TYPE_CHECKING:
    from strobe.web.instances import Instance


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=whole_number, metavar="N", help="the one on this port")
    parser.add_argument("--all", action="store_true", help="all of them")


def run(args: argparse.Namespace) -> int:
    for instance in _meant(args):
        _stop(instance)
    return 0


def _meant(args: argparse.Namespace) -> "list[Instance]":
    import platform

    from strobe.web.instances import all_noted

    here = [one for one in all_noted() if one.machine == platform.node()]
    if args.port is not None:
        here = [one for one in here if one.port == args.port]
    if not here:
        where = "" if args.port is None else f" on port {args.port}"
        raise UsageError(f"no server of yours is running{where}",
                         hint="strobe status lists them; strobe start starts one")  # fmt: skip
    alive = [one for one in here if one.is_alive]
    if len(alive) > 1 and not args.all:
        ports = ", ".join(f"--port {one.port} ({one.base_dir})" for one in alive)
        raise UsageError("several servers are running: which one?", hint=f"{ports}, or --all")
    return here


def _stop(instance: "Instance") -> None:
    from strobe.web.instances import end, log_file, remove

    if not instance.is_alive:
        remove(instance)
        print(f"strobe: the server on port {instance.port} had ended by itself; its log: "
              f"{log_file(instance.port)}")  # fmt: skip
    elif end(instance):
        print(f"strobe: stopped the server on port {instance.port}")
    else:
        print(f"strobe: the server on port {instance.port} did not answer and was ended (kill -9)")
