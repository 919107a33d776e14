"""Record a small training that has a fault, and show what Strobe finds.

The script is an ordinary PyTorch training (src/strobe/demo/train.py) that knows nothing of Strobe.
"""

import argparse
import sys
from pathlib import Path

from strobe.errors import MissingPackage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="RUN", type=Path,
                        help="folder of the run (default: a new one in strobe-runs/)")  # fmt: skip
    parser.add_argument("--fixed", action="store_true", help="the same training without the fault")


def run(args: argparse.Namespace) -> int:
    import importlib.util

    from strobe import demo
    from strobe.cli import main

    if importlib.util.find_spec("torch") is None:
        raise MissingPackage(
            "the demo trains with PyTorch, which is not installed here",
            hint="pip install torch",
        )
    script = Path(demo.__file__).with_name("train.py")
    arguments = ["--workers", "2"] if args.fixed else []
    output = ["-o", str(args.output)] if args.output else []
    words = " ".join(["strobe run", script.name, *arguments])
    print(f"strobe: recording an ordinary training script: {words}", file=sys.stderr)
    return main(["run", *output, str(script), *arguments])
