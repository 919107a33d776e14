"""Start the web pages in the background, and print their link."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from strobe.cli.opening import whole_number
from strobe.cli.parser import with_default
from strobe.errors import UsageError
from strobe.messages import localized

_PORT, _HOST = 8080, "127.0.0.1"

if TYPE_CHECKING:
    from strobe.web.instances import Instance


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--base-dir", "--summary-base-dir", metavar="DIR",
        help=localized("cli/start.base-dir"),
    )  # fmt: skip
    parser.add_argument(
        "--port",
        type=whole_number,
        metavar="N",
        default=_PORT,
        help=with_default(localized("cli/start.port"), _PORT),
    )
    parser.add_argument(
        "--host",
        metavar="HOST",
        default=_HOST,
        help=with_default(localized("cli/start.host"), _HOST),
    )
    parser.add_argument(
        "--allow-host", metavar="NAME", action="append", default=[],
        help=localized("cli/start.allow-host"),
    )  # fmt: skip
    parser.add_argument("--foreground", action="store_true", help=localized("cli/start.foreground"))


def run(args: argparse.Namespace) -> int:
    from strobe.web import starting

    base_dir = starting.checked_base_dir(args.base_dir)
    if not 1 <= args.port <= 65535:
        raise UsageError.of("cli/start.no-port", port=args.port)
    known = starting.running_at(args.port)
    if known is not None:
        return _already(known, base_dir)
    hosts = tuple(args.allow_host)
    if args.foreground:
        return _stay(base_dir, args.host, args.port, hosts)
    instance = starting.start(base_dir, args.host, args.port, hosts)
    print(f"strobe: {localized('cli/start.at', folder=base_dir)}")
    print_link(instance.link, args.host, args.port)
    id = "cli/start.to-stop" if args.port == _PORT else "cli/start.to-stop-port"
    print(f"  {localized(id, port=args.port)}")
    return 0


def print_link(link: str, host: str, port: int) -> None:
    print(f"  {link}")
    if os.environ.get("SSH_CONNECTION") and host in ("127.0.0.1", "localhost", "::1"):
        print(f"  {localized('cli/start.tunnel', port=port)}")


def _already(known: "Instance", base_dir: Path) -> int:
    if known.base_dir == str(base_dir):
        print(f"strobe: {localized('cli/start.already', port=known.port, folder=base_dir)}")
        print_link(known.link, known.host, known.port)
        return 0
    raise UsageError.of(
        "cli/start.port-has-other-folder", where=known.base_dir, port=known.port,
        next=known.port + 1,
    )  # fmt: skip


def _stay(base_dir: Path, host: str, port: int, hosts: tuple[str, ...]) -> int:
    from strobe.web.instances import this_process
    from strobe.web.server import Settings, listen, token_to_use
    from strobe.web.starting import run_here

    settings = Settings(base_dir, host, port, token_to_use(), hosts)
    with listen(host, port) as listener:
        print(f"strobe: {localized('cli/start.at', folder=base_dir)}")
        print_link(this_process(host, port, settings.base_dir, settings.token).link, host, port)
        print(f"  {localized('cli/start.to-stop-key')}", flush=True)
        run_here(settings, listener)
    return 0
