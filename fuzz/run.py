"""Fuzz the readers with atheris, guided by coverage; not part of the tests.

    pip install atheris
    python -m fuzz.run --minutes 10 [--data FOLDER] [--work FOLDER]

Seeds are small traces, whole files and folders of FOLDER (real traces), and beginnings of larger
ones. An input that makes a reader raise anything but a StrobeError, or take longer than the
limit, ends the run and stays in the work folder as crash-... or timeout-....
"""

import argparse
import gzip
import shutil
import sys
import tempfile
from pathlib import Path

from fuzz import tracker_files

LONGEST_SEED = 20_000


def seeds(data: Path | None) -> list[bytes]:
    small = [
        b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1.5,'
        b' "dur": 2, "args": {"External id": 1, "Input Dims": [[1]], "Input type": ["float"]}}]}',
        b'[{"ph":"B","name":"a","ts":1,"pid":0,"tid":0},{"ph":"E","ts":2,"pid":0,"tid":0}',
        *tracker_files.seeds(),
    ]
    for path in sorted(data.rglob("*")) if data else []:
        if not path.is_file():
            continue
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        small.append(content[:LONGEST_SEED])
        if len(content) > LONGEST_SEED:
            small.append(content[:200] + content[-LONGEST_SEED:])
    return small


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("fuzz-work"))
    args = parser.parse_args()
    import atheris

    with atheris.instrument_imports(include=["strobe.ingest"]):
        from fuzz.target import read_everything
        from strobe.ingest.importing.discovery import UNPACKED

    corpus = args.work / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(args.data)):
        (corpus / f"seed-{number:04}").write_bytes(seed)
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    file = folder / "input"

    def one(data: bytes) -> None:
        file.write_bytes(data)
        read_everything(file, folder)
        shutil.rmtree(folder / UNPACKED, ignore_errors=True)

    options = [
        f"-max_total_time={int(args.minutes * 60)}", "-timeout=20", "-rss_limit_mb=2048",
        f"-max_len={LONGEST_SEED + 400}", f"-artifact_prefix={args.work}/",
    ]  # fmt: skip
    try:
        atheris.Setup([sys.argv[0], *options, str(corpus)], one)
        atheris.Fuzz()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
