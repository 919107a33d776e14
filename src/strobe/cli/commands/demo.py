"""Record a small training script with a known problem, and show what Strobe finds."""

import argparse
import sys
from pathlib import Path

from strobe.errors import MissingPackage
from strobe.messages import localized
from strobe.model.new_run import BASE_DIR


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="RUN", type=Path,
                        help=localized("cli/run.output", base=BASE_DIR))  # fmt: skip
    parser.add_argument("--fixed", action="store_true", help=localized("cli/demo.fixed"))


def run(args: argparse.Namespace) -> int:
    import importlib.util

    from strobe import demo
    from strobe.cli import main

    if importlib.util.find_spec("torch") is None:
        raise MissingPackage.of("cli/demo.needs-torch")
    script = Path(demo.__file__).with_name("train.py")
    arguments = ["--workers", "2"] if args.fixed else []
    output = ["-o", str(args.output)] if args.output else []
    words = " ".join(["strobe run", script.name, *arguments])
    text = localized("cli/demo.recording", command=words)
    print(f"strobe: {text}", file=sys.stderr)
    return main(["run", *output, str(script), *arguments])
