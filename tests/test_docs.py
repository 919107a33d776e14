"""The docs are true: marked blocks are run on a real recording, every `strobe` line is parsed.

A block opened with ```python run or ```console run is run, in the order of its page. The runs it
names are those of `strobe demo -o demo-run`, recorded once. Output shown below a command must begin
as the real one does; the numbers may differ.
"""

import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from strobe import cli

pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
RUN_PAGES = [p for p in PAGES if p.name in ("README.md", "start.md") or p.parent.name == "guide"]


class Block(NamedTuple):
    page: Path
    line: int
    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    found, opened, lines = [], None, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if opened is None and line.startswith("```"):
            opened, lines = (number, line[3:].strip()), []
        elif opened is not None and line.startswith("```"):
            found.append(Block(page, *opened, "\n".join(lines)))
            opened = None
        elif opened is not None:
            lines.append(line)
    assert opened is None, f"{page.name}: a block is not closed"
    return found


def name_of(block: Block) -> str:
    return f"{block.page.relative_to(ROOT).as_posix()}:{block.line}"


ALL = [block for page in PAGES for block in blocks(page)]
RUNNABLE = [b for page in RUN_PAGES for b in blocks(page) if b.language.endswith(" run")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the demo was recorded, as the docs say."""
    place = tmp_path_factory.mktemp("docs")
    done = subprocess.run(
        [sys.executable, "-m", "strobe", "demo", "-o", "demo-run"],
        cwd=place, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "One step takes" in done.stderr
    return place


@pytest.mark.slow
@pytest.mark.parametrize("block", [b for b in RUNNABLE if "console" in b.language], ids=name_of)
def test_commands_run(block, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    for command, shown in sessions(block.text):
        words = shlex.split(command)
        assert words[0] == "strobe", command
        code = cli.main(words[1:])
        captured = capsys.readouterr()
        assert code == 0, f"{command}\n{captured.err}"
        assert captured.out.strip(), command
        if shown:
            assert captured.out.splitlines()[0].split() == shown[0].split(), command


@pytest.mark.slow
@pytest.mark.parametrize("block", [b for b in RUNNABLE if "python" in b.language], ids=name_of)
def test_python_runs(block, folder):
    done = subprocess.run(
        [sys.executable, "-c", block.text],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    shown = output_below(block)
    assert [_shape(line) for line in printed[: len(shown)]] == [_shape(line) for line in shown]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_strobe_line_is_one_that_strobe_takes(page):
    for block in blocks(page):
        if block.language.split()[:1] not in (["sh"], ["console"]):
            continue
        for line in block.text.splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True) if "strobe" in line else []
            if words[:1] == ["strobe"] and not {"[options]", "..."} & set(words):
                _parse(words[1:])


def _parse(words: list[str]) -> None:
    command = importlib.import_module({name: path for name, path, _ in cli.COMMANDS}[words[0]])
    parser = cli.Parser(prog=f"strobe {words[0]}", allow_abbrev=False)
    command.add_arguments(parser)
    parser.parse_args(words[1:])


@pytest.mark.parametrize("block", [b for b in ALL if b.language.startswith("python")], ids=name_of)
def test_python_is_python(block):
    compile(block.text, name_of(block), "exec")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_are_named_exist(page):
    text = page.read_text(encoding="utf-8")
    for name in re.findall(
        r"`((?:src|tests|scripts|docs|benchmarks)/[\w./]+\.(?:py|md|svg))`", text
    ):
        if "NAME" not in name and "FRAMEWORK" not in name:
            assert (ROOT / name).exists(), f"{page.name} names {name}"


def test_messages_that_are_explained_exist():
    """The longest stretch of each message that does not vary is in the source or the catalogue."""
    page = ROOT / "docs" / "guide" / "when-things-go-wrong.md"
    package = ROOT / "src" / "strobe"
    sources = [*sorted(package.rglob("*.py")), *sorted(package.rglob("*.toml"))]
    source = " ".join(path.read_text(encoding="utf-8") for path in sources)
    source = re.sub(r'"\s*\n?\s*f?"', "", source)  # strings written in several pieces
    messages = re.findall(r"\*\*`(.*?)`\*\*", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(messages) > 15
    for message in messages:
        text = " ".join(message.split())
        stretches = re.split(
            r"RUN|FILE|this folder |…|:|finished|data-2|data |\d+|No space left on device", text
        )
        longest = max(stretches, key=len).strip(" :;,()")
        assert longest in source, text


def sessions(text: str) -> list[tuple[str, list[str]]]:
    """Commands and the output shown below each."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def output_below(block: Block) -> list[str]:
    """What a ```text block directly below a Python block says that it prints."""
    following = [b for b in blocks(block.page) if b.line > block.line][:1]
    end = block.line + len(block.text.splitlines()) + 1
    is_output = following and following[0].language == "text" and following[0].line == end + 2
    return following[0].text.splitlines() if is_output else []


def _shape(line: str) -> str:
    """The words of a line without its numbers, and without names that a ranking may swap.

    A dash at the end is the scope of an operator outside every module: one of the optimizer's may
    be among the dearest on a busy machine.
    """
    return re.sub(r"aten::\w+|Net[\w.]*|[\d.]+|(?<= )-$", "·", " ".join(line.split()))
