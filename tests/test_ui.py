"""The web pages that are committed are those of ui/, and hold together with the Python side."""

import filecmp
import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from strobe import units

ROOT = Path(__file__).resolve().parent.parent
UI = ROOT / "ui"
STATIC = ROOT / "src" / "strobe" / "web" / "static"

if not UI.exists():
    pytest.skip("not a checkout", allow_module_level=True)

_spec = importlib.util.spec_from_file_location("build_ui", ROOT / "scripts" / "build_ui.py")
build_ui = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(build_ui)

# What the pages are not built from.
_LEFT_OUT = {"node_modules", "tests"}


def sources() -> list[str]:
    paths = [path.relative_to(UI) for path in UI.rglob("*") if path.is_file()]
    return sorted(
        path.as_posix()
        for path in paths
        if not any(part in _LEFT_OUT or part.startswith(".") for part in path.parts)
    )


def test_the_bundle_is_built_from_these_sources():
    found = hashlib.sha256()
    for path in sources():
        found.update(f"{path}\0".encode() + (UI / path).read_bytes() + b"\0")
    noted = (STATIC / "built_from.txt").read_text().strip()
    assert found.hexdigest() == noted, "ui/ has changed: make ui, and commit src/strobe/web/static"


def test_the_sentences_of_the_pages_are_those_of_the_catalogue():
    written = (UI / build_ui.MESSAGES).read_text(encoding="utf-8")
    assert written == build_ui.page_messages(), (
        "a message has changed: make ui, and commit the result"
    )


def test_every_sentence_of_the_pages_is_used():
    """By its whole key, or by the beginning of a key that is put together."""
    source = "\n".join(path.read_text() for path in (UI / "src").rglob("*.ts*"))
    whole = set(re.findall(r"['\"`]([\w.\- ]+)['\"`]", source))
    begun = tuple(re.findall(r"`([\w.\-]+\.)\$\{", source))
    keys = json.loads(build_ui.page_messages())
    assert not [key for key in keys if key not in whole and not key.startswith(begun)]


def test_the_bundle_names_nobody_outside():
    """Not even in a licence's address: what is shown would have to be loaded from elsewhere."""
    page = (STATIC / "index.html").read_text()
    assert not re.search(r"(src|href)=\"(https?:)?//", page)
    assert "<script>" not in page and "style=" not in page, "the policy of the server forbids it"


def test_every_package_of_the_bundle_has_its_licence():
    text = (STATIC / "THIRD_PARTY_WEB.txt").read_text()
    used = json.loads((UI / "package.json").read_text())["dependencies"]
    for name, version in used.items():
        assert f"{name} {version}" in text


def classes(path: Path) -> set[str]:
    """The classes that a style sheet or a component names."""
    text = path.read_text()
    if path.suffix == ".css":
        return set(re.findall(r"^\.([\w-]+)", text, re.MULTILINE))
    given = re.findall(r"class=(\"[^\"]*\"|\{[^}]*\})", text)
    quoted = [words for one in given for words in re.findall(r"[\"'`]([\w -]*)", one)]
    return {word for words in quoted for word in words.split()}


def test_no_page_styles_what_belongs_to_another():
    """Style sheets of all pages stay loaded, and an exported file has them all at once."""
    pages = UI / "src" / "pages"
    for sheet in pages.rglob("*.css"):
        page = sheet.relative_to(pages).parts[0]
        own = [pages / page, pages / f"{page}.tsx"]
        names = classes(sheet)
        for other in (UI / "src").rglob("*"):
            if other.suffix not in (".tsx", ".css") or any(other.is_relative_to(o) for o in own):
                continue
            both = names & classes(other)
            assert not both, f"{sheet.name} styles {both} of {other.name}: move it to base.css"


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """A copy of ui/ with its packages installed, and the Node to use them with."""
    node = build_ui.find_node()
    if node is None:
        pytest.skip(build_ui.NO_NODE)
    copy = tmp_path_factory.mktemp("workshop") / "ui"
    shutil.copytree(UI, copy, ignore=shutil.ignore_patterns("node_modules"))
    if build_ui.is_installed(UI):
        (copy / "node_modules").symlink_to(UI / "node_modules")
    else:
        try:
            build_ui.install(copy, node)
        except build_ui.Unavailable as reason:
            pytest.skip(str(reason))
    return copy, node


@pytest.mark.slow
def test_building_again_gives_the_same_bytes(workshop):
    ui, node = workshop
    node.run("run", "build", ui=ui, capture_output=True, timeout=500)
    built = ui.parent / "src" / "strobe" / "web" / "static"
    assert _files(built) == _files(STATIC)
    _, different, unreadable = filecmp.cmpfiles(built, STATIC, _files(built), shallow=False)
    assert not different and not unreadable


def _files(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


NUMBERS = [0, 1, 7, 12.4, 99.94, 99.96, 999, 999.4, 999.6, 1000, 1234, 12_345, 99_949, 999_499,
           999_500, 1e6, 1.5e6, 123_456_789, 1e9, 59e9, 119e9, 121e9, 7.1e12, 3.2e15]  # fmt: skip


@pytest.mark.slow
def test_numbers_read_the_same_in_the_pages_and_in_the_terminal(workshop):
    ui, node = workshop
    script = ui / "units_told.ts"
    script.write_text(
        "import * as units from './src/units';\n"
        f"const numbers = {json.dumps(NUMBERS)};\n"
        "const told = numbers.map((n) => [units.duration(n), units.duration(-n), units.size(n),"
        " units.count(n), units.rate(n, 'FLOP/s'), units.moment(n), units.percent(n / 1e6)]);\n"
        "console.log(JSON.stringify(told));\n"
    )
    rolldown = ui / "node_modules" / "rolldown" / "bin" / "cli.mjs"
    program = shutil.which("node", path=node.environment["PATH"])
    out = ui / "units_told.mjs"
    subprocess.run(
        [program, str(rolldown), str(script), "--file", str(out), "--format", "esm"],
        cwd=ui, env=node.environment, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    done = subprocess.run(
        [program, str(out)], check=True, capture_output=True, text=True, timeout=60
    )
    expected = [
        [units.duration(n), units.duration(-n), units.size(n), units.count(n),
         units.rate(n, "FLOP/s"), units.moment(n), units.percent(n / 1e6)]
        for n in NUMBERS
    ]  # fmt: skip
    assert json.loads(done.stdout) == expected


@pytest.mark.slow
def test_a_package_holds_the_pages_and_their_licences(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as package:
        packed = {name.removeprefix("strobe/web/static/") for name in package.namelist()}
    assert packed >= {*_files(STATIC)}
    assert {"index.html", "THIRD_PARTY_WEB.txt"} <= packed
