"""The habits of this repository, as tests."""

import ast
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import strobe
from strobe import advise, cli
from strobe.analyse.tables import ANALYSES
from strobe.messages import CHINESE
from strobe.model.schema import STORED_TABLES
from strobe.show.formats import FORMATS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(strobe.__file__).resolve().parent
TESTS = ROOT / "tests"

# Rooms that read runs: one that is removed meanwhile must not be made anew (store/run_folder.py).
READERS = ("store", "ingest", "analyse", "advise", "timeline", "show", "web")
# Of their modules, those that make a folder with all it lies in, and why none of that is a run.
MAKES_PARENTS = {
    "ingest/importing/archives.py": "unpacks into a run that is not there yet",
    "ingest/importing/importer.py": "makes a run that is not there yet",
    "web/instances.py": "notes of servers, in the user's home",
    "web/answering/cache.py": "the user's cache",
}

LONGEST_FILE, LONGEST_TEST = 400, 650


def tracked(*patterns: str) -> list[Path]:
    """The files of the repository, those not yet added included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [path for line in done.stdout.splitlines() if (path := ROOT / line).is_file()]


def stems(folder: str) -> list[str]:
    """The modules of a folder, without those of its packages' beginnings."""
    return sorted(path.stem for path in (PACKAGE / folder).rglob("[a-z]*.py"))


def modules() -> list[Path]:
    return [p for p in sorted(PACKAGE.rglob("*.py")) if not p.name.startswith("__")]


# A file in one of these folders is what the folder is called after: listed in its registry, and
# with a test of its own or one that covers all of them.
REGISTRIES = {
    "advise/rules": (advise.RULES, None),
    "analyse/tables": (ANALYSES, None),
    "show/formats": (FORMATS, "tests/show/test_formats.py"),
}


@pytest.mark.parametrize("folder", REGISTRIES)
def test_every_file_of_a_registry_is_registered_in_order_and_tested(folder):
    registry, test_of_all = REGISTRIES[folder]
    assert [_stem(module) for module in registry] == stems(folder)
    for module in registry:
        home = TESTS.joinpath(*module.__name__.split(".")[1:-1])
        assert (home / f"test_{_stem(module)}.py").exists() or test_of_all, module.__name__
    assert test_of_all is None or (ROOT / test_of_all).exists()


def test_rules_and_analyses_are_named_after_their_modules():
    for module in (*advise.RULES, *ANALYSES):
        assert _stem(module).replace("_", "-") == module.NAME
    for module in ANALYSES:
        assert module.RESULT.name == module.NAME


def test_every_command_is_registered():
    assert {stem.rstrip("_") for stem in stems("cli/commands")} == {
        name for name, _, _ in cli.COMMANDS
    }


def test_every_rule_has_a_manual_and_a_page():
    headings = ["## What it is", "## How it is judged", "## How to fix"]
    for module in advise.RULES:
        title, text = advise.manual(module)
        assert title and len(title) <= 100, module.NAME
        assert [line for line in text.splitlines() if line.startswith("#")] == headings, module.NAME
        assert (ROOT / "docs" / "rules" / f"{module.NAME}.md").exists(), module.NAME
        title, text = advise.manual(module, CHINESE)
        assert re.search(r"[\u4e00-\u9fff]", title), f"{module.NAME} has no manual in Chinese"
        assert text.count("\n## ") == 2 and text.startswith("## "), module.NAME


def test_every_column_is_explained():
    for table in (*STORED_TABLES, *(module.RESULT for module in ANALYSES)):
        assert table.doc.rstrip().endswith((".", "?")), table.name
        for column in table.columns:
            assert column.doc.endswith("."), f"{table.name}.{column.name}"


def test_every_module_opens_with_a_sentence():
    for path in modules():
        sentence = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert sentence, path


# More modules than this in a folder are too many to look through.
MOST_MODULES = 25
# Folders whose every file is a registered thing of the same kind may hold more.
MAY_HOLD_MORE = {"advise/rules"}


def test_no_folder_is_too_wide_and_no_prefix_stands_for_one():
    """Three files that share a first word want to be a folder."""
    for folder in {path.parent for path in modules()}:
        name = folder.relative_to(PACKAGE).as_posix()
        names = [path.stem for path in folder.glob("[a-z]*.py")]
        assert len(names) <= MOST_MODULES or name in MAY_HOLD_MORE, name


def test_who_reads_a_run_makes_no_folder_with_its_parents():
    found = set()
    for path in modules():
        name = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            has_parents = isinstance(node, ast.keyword) and node.arg == "parents"
            is_makedirs = isinstance(node, ast.Attribute) and node.attr == "makedirs"
            if name.split("/")[0] in READERS and (has_parents or is_makedirs):
                found.add(name)
    assert found == set(MAKES_PARENTS)


def test_no_file_is_too_long():
    long = {}
    for path in tracked("*.py"):
        limit = LONGEST_TEST if TESTS in path.parents else LONGEST_FILE
        count = len(path.read_text(encoding="utf-8").splitlines())
        if count > limit:
            long[path.relative_to(ROOT).as_posix()] = count
    assert not long


# Written so that this file does not contain what it forbids.
FORBIDDEN = [
    re.compile(r"/(?:work|home|root|mnt|opt|Users)/[\w.-]+"),
    re.compile(r"(?:files\.)?py(?:pi|thonhosted)\.org|--(?:extra-)?index-" + "url|npm" + "js"),
    re.compile(r"\b(?:10\.\d{1,3}|192\.168|172\.1[6-9])(?:\.\d{1,3}){2}\b"),
]


def test_no_file_speaks_of_a_machine_or_a_registry():
    found = []
    for path in tracked():
        if path == Path(__file__).resolve():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for pattern in FORBIDDEN:
            found += [f"{path.relative_to(ROOT)}: {hit[0]}" for hit in pattern.finditer(text)]
    assert not found


def test_nothing_outside_the_repository_is_read_but_shared_data():
    """No test or script climbs above the checkout, except to real traces that may lie beside it."""
    for path in tracked("*.py"):
        depth = len(path.relative_to(ROOT).parts) - 1
        text = path.read_text(encoding="utf-8")
        for hit in re.finditer(r"Path\(__file__\)(?:\.resolve\(\))?\.parents\[(\d+)\]", text):
            is_shared = text[hit.end() :].startswith(' / "shared"')
            assert is_shared or int(hit[1]) <= depth, f"{path.relative_to(ROOT)}: {hit[0]}"


@pytest.mark.slow
def test_the_reference_is_current():
    script = ROOT / "scripts" / "reference.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_command_is_in_the_reference():
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    for name, _, _ in cli.COMMANDS:
        assert f"## strobe {name}\n" in page


def test_only_commands_and_the_demo_print():
    for path in modules():
        if {"cli", "demo"} & set(path.relative_to(PACKAGE).parts):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_print = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
            assert not is_print, f"{path.name}:{getattr(node, 'lineno', 0)}"


@pytest.mark.slow
def test_collectors_import_only_the_standard_library():
    """Also those of frameworks: they import theirs when it is there, inside functions."""
    files = [p for p in (PACKAGE / "collect").rglob("[a-z]*.py") if "inject" not in p.parts]
    collectors = [
        ".".join(("strobe", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in files
    ]
    assert len(collectors) > 80
    loaded = loaded_by(*collectors)
    foreign = loaded - set(sys.stdlib_module_names) - {"strobe", "__main__", "sitecustomize"}
    assert not {name for name in foreign if not name.startswith("_")}


@pytest.mark.slow
def test_importing_strobe_is_light():
    heavy = {"numpy", "duckdb", "rich", "msgspec", "torch", "argparse", "subprocess"}
    assert not heavy & loaded_by("strobe")


@pytest.mark.slow
def test_help_imports_no_command():
    code = "import sys; from strobe.cli import main; main(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert (
        not {"numpy", "duckdb", "rich", "strobe.cli.commands.run", "strobe.cli.commands.show"}
        & loaded
    )


def loaded_by(*names: str) -> set[str]:
    """The top-level modules that importing these adds to those of a bare interpreter."""
    code = (
        "import sys; before = set(sys.modules)\n"
        f"for name in {list(names)!r}: __import__(name)\n"
        "added = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "import json; print(json.dumps(sorted(added)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_every_public_name_can_be_had():
    for name in strobe.__all__:
        assert getattr(strobe, name) is not None
    for _, module, _ in cli.COMMANDS:
        command = importlib.import_module(module)
        assert command.__doc__ and callable(command.run) and callable(command.add_arguments)


def _stem(module: object) -> str:
    return module.__name__.rsplit(".", 1)[1]
