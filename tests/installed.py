"""A fresh environment with Strobe installed, from a wheel or editable, as users have it."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Variables by which Strobe, a launcher or pytest would speak to the processes we start.
_NOT_PASSED_ON = ("STROBE_", "MS_PROFILER", "PYTHONPATH", "RANK", "WORLD_SIZE", "LOCAL_RANK")


def install(folder: Path, *, editable: bool = False) -> Path:
    """The Python of a new environment; torch and the rest are those that run the tests."""
    wheels = folder / "wheels"
    wheels.mkdir(parents=True)
    what = "build_editable" if editable else "build_wheel"
    code = f"import sys; from hatchling.build import {what}; {what}(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(wheels)], cwd=ROOT, check=True, timeout=120)
    home = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    (packages,) = home.glob("lib/python*/site-packages")
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    # A line that is a path: what lies there can be imported, but its .pth files are not read.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin" / "python"


def environment(**variables: str) -> dict[str, str]:
    passed_on = {k: v for k, v in os.environ.items() if not k.startswith(_NOT_PASSED_ON)}
    return {**passed_on, **variables}
