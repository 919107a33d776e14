"""Bring in traces written elsewhere; formats are recognised by content.

strobe import trace.json.gz              one file
strobe import logs/ -o RUN               a folder: every trace in it, of one rank or many
"""

import argparse
import sys
from pathlib import Path

from strobe.cli.output_folder import add_output_folder, output_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="+", help="files or folders, packed or not")
    add_output_folder(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary at the end")


def run(args: argparse.Namespace) -> int:
    from strobe.cli.opening import open_run
    from strobe.ingest.importing import import_traces
    from strobe.show.summary import print_summary

    paths = [Path(path) for path in args.paths]
    folder = output_folder(args, paths[0].name.split(".")[0])
    import_traces(paths, folder)
    if not args.quiet:
        with open_run(str(folder)) as opened:
            print_summary(opened, sys.stdout)
    return 0
