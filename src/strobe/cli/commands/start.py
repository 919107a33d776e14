"""Start the web pages in the background, and print the link to open them with.

strobe start                             the runs in strobe-runs/, or those below this folder
strobe start --base-dir DIR              those below DIR
strobe start --host 0.0.0.0              also for other machines; the link's token lets them in

The token is made anew at each start; STROBE_TOKEN sets one. strobe stop ends it, strobe status
prints the link again.
"""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from strobe.cli.opening import whole_number
from strobe.errors import UsageError

if TYPE_CHECKING:
    from strobe.web.instances import Instance


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--base-dir", "--summary-base-dir", metavar="DIR",
        help="folder whose runs are shown; --summary-base-dir is MindInsight's name for it",
    )  # fmt: skip
    parser.add_argument(
        "--port", type=whole_number, metavar="N", default=8080, help="default: 8080"
    )
    parser.add_argument(
        "--host", metavar="H", default="127.0.0.1", help="address to listen on; default: 127.0.0.1"
    )
    parser.add_argument(
        "--allow-host", metavar="NAME", action="append", default=[],
        help="another name that browsers may call this server by, behind a proxy",
    )  # fmt: skip
    parser.add_argument("--foreground", action="store_true", help="stay here until Ctrl+C")


def run(args: argparse.Namespace) -> int:
    from strobe.web import starting

    base_dir = starting.checked_base_dir(args.base_dir)
    if not 1 <= args.port <= 65535:
        raise UsageError(f"there is no port {args.port}", hint="a number from 1 to 65535")
    known = starting.running_at(args.port)
    if known is not None:
        return _already(known, base_dir)
    hosts = tuple(args.allow_host)
    if args.foreground:
        return _stay(base_dir, args.host, args.port, hosts)
    instance = starting.start(base_dir, args.host, args.port, hosts)
    print(f"strobe: the runs below {base_dir} are at")
    print_link(instance.link, args.host, args.port)
    print(f"  stop it with: strobe stop{'' if args.port == 8080 else f' --port {args.port}'}")
    return 0


def print_link(link: str, host: str, port: int) -> None:
    print(f"  {link}")
    if os.environ.get("SSH_CONNECTION") and host in ("127.0.0.1", "localhost", "::1"):
        print(f"  on your own machine first: ssh -L {port}:localhost:{port} this-machine")


def _already(known: "Instance", base_dir: Path) -> int:
    if known.base_dir == str(base_dir):
        print(f"strobe: already running on port {known.port}, with the runs below {base_dir}")
        print_link(known.link, known.host, known.port)
        return 0
    raise UsageError(
        f"on port {known.port} the runs below another folder are shown already",
        where=known.base_dir,
        hint=f"strobe stop --port {known.port} first, or strobe start --port {known.port + 1}",
    )


def _stay(base_dir: Path, host: str, port: int, hosts: tuple[str, ...]) -> int:
    from strobe.web.instances import this_process
    from strobe.web.server import Settings, listen, token_to_use
    from strobe.web.starting import run_here

    settings = Settings(base_dir, host, port, token_to_use(), hosts)
    with listen(host, port) as listener:
        print(f"strobe: the runs below {base_dir} are at")
        print_link(this_process(host, port, settings.base_dir, settings.token).link, host, port)
        print("  stop it with Ctrl+C", flush=True)
        run_here(settings, listener)
    return 0
