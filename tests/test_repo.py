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
from strobe import advise, analyse, cli, show
from strobe.model.schema import STORED_TABLES

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(strobe.__file__).resolve().parent
TESTS = ROOT / "tests"

# Modules of analyse/ and show/ that answer no question and write no format of their own.
NOT_ANALYSES = {
    "compare", "compare_operators", "compare_settings", "compare_steps", "data_waits", "devices",
    "intervals", "opened", "operator_ranking", "operator_work", "recorded", "select", "stretches",
    "summary",
}  # fmt: skip
NOT_FORMATS = {
    "atomic", "cells", "chinese", "compare", "findings", "layout", "markdown", "page_answers",
    "paper", "rankings", "side_by_side", "step_summary", "summary", "table",
}  # fmt: skip

# Modules of advise/ that are no rule: what rules share.
NOT_RULES = {
    "argument_copies", "core_shares", "data_cause", "data_causes", "loader_restarts",
    "device_model", "exchange", "finding", "fixes", "framework", "loader", "operator_times",
    "origin", "pipeline_alone", "pipeline_model",
    "library_iterator", "plain_source", "queue_pipeline", "same_code", "seen", "single_operations",
    "outcome", "side_work", "source_change", "step_parts", "training", "trend", "verdict",
}  # fmt: skip

# Tested under another name than their own: by what, and why.
COVERED_ELSEWHERE = {
    "advise/finding.py": "tests/advise: what every rule answers with",
    "advise/core_shares.py": "tests/advise/test_busy_machine.py, test_crowded_cores.py",
    "advise/data_cause.py": "tests/advise/test_data_starvation.py: every cause",
    "advise/data_causes.py": "tests/advise/test_data_starvation.py: every cause",
    "advise/loader_restarts.py": "tests/advise/test_data_starvation.py: restarts",
    "advise/side_work.py": "tests/advise/test_periodic_stall.py, test_host_gap.py",
    "advise/step_parts.py": "tests/advise/test_host_gap.py, test_growing_work.py",
    "advise/trend.py": "tests/advise/test_memory_growth.py, test_growing_work.py",
    "analyse/devices.py": "tests/analyse/test_kernels.py: work, launches and operators",
    "cli/build.py": "tests/ingest/test_build.py: one line around the builder",
    "cli/demo.py": "tests/test_docs.py: its run is the one that the docs are checked on",
    "cli/import_.py": "tests/ingest/test_importing.py: its command line",
    "cli/opening.py": "tests/cli/test_main.py: what the commands share",
    "cli/output_folder.py": "tests/faults: wrong -o",
    "cli/progress_line.py": "tests/cli/test_report.py: a line while the verdict is found",
    "cli/run.py": "tests/loops/test_loops.py: every script there runs under it",
    "collect/jax_data.py": "tests/frameworks/jax/test_recording.py: waits for grain",
    "collect/inject/sitecustomize.py": "tests/loops/test_loops.py: recording begins there",
    "compiled_mindspore.py": "tests/frameworks/mindspore: compiled functions",
    "collect/analysis.py": "tests/collect/test_profiler.py: real runs analysed",
    "collect/beginning.py": "tests/test_ways.py: every way begins with it",
    "collect/scope.py": "tests/collect/test_profiler.py: scopes on the timeline",
    "collect/jax.py": "tests/frameworks/jax/test_recording.py: every shape of loop, for real",
    "collect/jax_calls.py": "tests/frameworks/jax/test_recording.py: what a script may do",
    "collect/jax_compile.py": "tests/frameworks/jax/test_recording.py: compilations",
    "collect/jax_functions.py": "tests/frameworks/jax/test_ways_to_compile.py: names and steps",
    "collect/jax_gradients.py": "tests/frameworks/jax/test_recording.py: without jax.jit",
    "collect/jax_memory.py": "tests/frameworks/jax/test_recording.py: memory of live arrays",
    "collect/jax_steps.py": "tests/collect/test_jax_device.py: what is marked, and when",
    "collect/jax_windows.py": "tests/frameworks/jax/test_recording.py: real windows",
    "compiled_jax.py": "tests/frameworks/jax/test_compiled.py: real functions",
    "compiled_torch.py": "tests/test_compiled.py: real functions",
    "collect/torch_parallel.py": "tests/collect/test_profiler.py: parallel_strategy",
    "ingest/chosen.py": "tests/collect/test_profiler.py: each option changes the tables",
    "callbacks/mindspore_callback.py": "tests/frameworks/mindspore: by step and by epoch",
    "collect/mindspore.py": "tests/frameworks/mindspore: every shape of loop, for real",
    "collect/mindspore_calls.py": "tests/frameworks/mindspore: every shape of loop, for real",
    "collect/mindspore_data.py": "tests/frameworks/mindspore: waits for data",
    "collect/mindspore_pending.py": "tests/frameworks/mindspore: parts of compiled steps",
    "collect/mindspore_pipeline.py": "tests/frameworks/mindspore: a map that sleeps",
    "collect/mindspore_versions.py": "tests/frameworks/mindspore: versions",
    "collect/mindspore_windows.py": "tests/frameworks/mindspore: real windows",
    "collect/recorder.py": "tests/loops, tests/faults: real processes",
    "collect/system.py": "tests/test_docs.py: the counters of a real run",
    "collect/dynamic_follower.py": "tests/collect/test_dynamic.py: ranks that agree",
    "collect/dynamic_intake.py": "tests/collect/test_dynamic.py: requests of every kind",
    "collect/dynamic_leader.py": "tests/collect/test_dynamic.py: ranks that agree",
    "cli/live.py": "tests/cli/test_dynamic.py, tests/cli/test_attach.py: what they share",
    "collect/torch.py": "tests/loops/test_loops.py: every shape of loop, for real",
    "collect/window_export.py": "tests/faults: windows written, cut and refused",
    "collect/torch_names.py": "tests/faults/test_windows.py: names of every kind come back",
    "collect/torch_spans.py": "tests/faults/test_windows.py: spans open across windows",
    "collect/windows.py": "tests/loops/test_loops.py, tests/faults: real windows",
    "demo/train.py": "tests/test_docs.py: recorded for the docs",
    "errors.py": "tests/cli/test_main.py: errors are told there",
    "ingest/arguments.py": "tests/ingest/kineto/test_file.py, test_flops.py: its columns",
    "ingest/carry.py": "tests/ingest/test_tables.py: slices give what the whole gives",
    "ingest/codes.py": "tests/ingest/kineto/test_file.py: names as numbers",
    "ingest/discovery.py": "tests/ingest/test_importing.py: files, folders, strangers",
    "ingest/json_chunks.py": "tests/ingest/kineto/test_file.py: cut and hostile files",
    "ingest/kept.py": "tests/ingest/test_clock.py: files that are gone",
    "ingest/problems.py": "tests/ingest/test_journal.py: what cannot be read",
    "ingest/rank_state.py": "tests/ingest/test_build.py: how ranks ended",
    "ingest/recorded.py": "tests/ingest/test_build.py: marks and windows into tables",
    "ingest/sources.py": "tests/ingest/test_importing.py: what a run was made of",
    "ingest/spool.py": "tests/ingest/test_tables.py: slices give what the whole gives",
    "ingest/spans.py": "tests/ingest/test_rank.py: joined there",
    "ingest/step_bounds.py": "tests/ingest/test_steps.py: one decision in three files",
    "ingest/step_phases.py": "tests/ingest/test_steps.py: one decision in three files",
    "ingest/tables.py": "tests/ingest/test_build.py, test_rank.py: every table",
    "ingest/trace.py": "tests/ingest/test_build.py, test_rank.py: every table",
    "ingest/kineto/window.py": "tests/ingest/test_rank.py: windows into tables",
    "ingest/windows.py": "tests/ingest/test_rank.py: windows into tables",
    "model/journal.py": "tests/collect/test_journal.py: written and read back",
    "model/manifest.py": "tests/ingest/test_build.py: run.json",
    "model/schema.py": "test_every_column_is_explained, below",
    "reading.py": "tests/test_docs.py: strobe.open_run",
    "show/atomic.py": "tests/show/test_formats.py: whole files",
    "show/cells.py": "tests/show/test_table.py: values as text",
    "show/csv_folder.py": "tests/show/test_formats.py: one of the formats",
    "show/json_file.py": "tests/show/test_formats.py: one of the formats",
    "show/step_summary.py": "tests/show/test_summary.py: one page",
    "show/paper.py": "tests/show/test_table.py: text on paper",
    "cli/start.py": "tests/web/test_starting.py: as a user types it",
    "cli/status.py": "tests/web/test_starting.py: as a user types it",
    "cli/stop.py": "tests/web/test_starting.py: as a user types it",
    "web/about.py": "tests/web/test_app.py: its answers",
    "web/instances.py": "tests/web/test_starting.py: servers found, lost and stopped",
    "web/one_run.py": "tests/web/test_starting.py: strobe show --web",
    "web/question.py": "tests/web/test_questions.py: every one of them",
    "web/wire.py": "tests/web/test_worker.py: messages between processes",
    "store/strings.py": "tests/helpers.py: texts of every drawn run",
    "store/run.py": "tests/helpers.py: every drawn run is opened by it",
    "units.py": "tests/show/test_units.py: numbers as text",
    "version.py": "tests/cli/test_main.py: strobe --version",
}

# Rooms that read runs: one that is removed meanwhile must not be made anew (store/run_folder.py).
READERS = ("store", "ingest", "analyse", "advise", "timeline", "show", "web")
# Of their modules, those that make a folder with all it lies in, and why none of that is a run.
MAKES_PARENTS = {
    "ingest/archives.py": "unpacks into a run that is not there yet",
    "ingest/importing.py": "makes a run that is not there yet",
    "web/instances.py": "notes of servers, in the user's home",
    "web/kept_answers.py": "the user's cache",
}

LONGEST_FILE, LONGEST_TEST = 400, 650


def tracked(*patterns: str) -> list[Path]:
    """The files of the repository, those not yet added included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [path for line in done.stdout.splitlines() if (path := ROOT / line).is_file()]


def stems(folder: str) -> set[str]:
    return {path.stem for path in (PACKAGE / folder).glob("[a-z]*.py")}


def modules() -> list[Path]:
    return [p for p in sorted(PACKAGE.rglob("*.py")) if not p.name.startswith("__")]


def test_every_analysis_is_registered():
    assert stems("analyse") - NOT_ANALYSES == {_stem(module) for module in analyse.ANALYSES}


def test_every_analysis_is_named_after_its_module():
    for module in analyse.ANALYSES:
        assert _stem(module) == module.NAME.replace("-", "_")
        assert module.RESULT.name == module.NAME


def test_every_format_is_registered():
    assert stems("show") - NOT_FORMATS == {_stem(module) for module in show.FORMATS}


def test_every_command_is_registered():
    shared = {"following", "live", "news", "opening", "option_flags", "output_folder"}
    shared |= {"progress_line", "report"}
    assert {stem.rstrip("_") for stem in stems("cli")} - shared == {
        name for name, _, _ in cli.COMMANDS
    }


def test_every_rule_is_registered_and_named_after_its_module():
    assert stems("advise") - NOT_RULES == {_stem(module) for module in advise.RULES}
    for module in advise.RULES:
        assert _stem(module).replace("_", "-") == module.NAME


def test_every_rule_has_a_manual_a_test_and_a_page():
    headings = ["## What it is", "## How it is judged", "## How to fix"]
    for module in advise.RULES:
        title, text = advise.manual(module)
        assert title and len(title) <= 100, module.NAME
        assert [line for line in text.splitlines() if line.startswith("#")] == headings, module.NAME
        assert (TESTS / "advise" / f"test_{_stem(module)}.py").exists(), module.NAME
        assert (ROOT / "docs" / "rules" / f"{module.NAME}.md").exists(), module.NAME


@pytest.mark.parametrize(
    "registry",
    [advise.RULES, analyse.ANALYSES, show.FORMATS],
    ids=["rules", "analyses", "formats"],
)
def test_registries_are_sorted(registry):
    names = [_stem(module) for module in registry]
    assert names == sorted(names)


def test_every_column_is_explained():
    for table in (*STORED_TABLES, *(module.RESULT for module in analyse.ANALYSES)):
        assert table.doc.rstrip().endswith((".", "?")), table.name
        for column in table.columns:
            assert column.doc.endswith("."), f"{table.name}.{column.name}"


def test_every_module_opens_with_a_sentence():
    for path in modules():
        sentence = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert sentence, path


def test_every_module_has_a_test_or_a_reason():
    for path in modules():
        name = path.relative_to(PACKAGE).as_posix()
        folder = path.parent.relative_to(PACKAGE)
        own = TESTS / folder / f"test_{path.stem}.py"
        # The parts of a format are tested through it, on real files.
        of_format = folder.parent.name == "ingest" and any((TESTS / folder).glob("test_*.py"))
        assert own.exists() or of_format or name in COVERED_ELSEWHERE, name
    for name, reason in COVERED_ELSEWHERE.items():
        assert (PACKAGE / name).exists(), f"{name} is listed and gone"
        for word in re.findall(r"tests/[\w/]+(?:\.py)?", reason):
            assert (ROOT / word).exists(), f"{name}: {reason}"


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


def test_collectors_import_only_the_standard_library():
    collectors = [
        f"strobe.collect.{path.stem}"
        for path in sorted((PACKAGE / "collect").glob("[a-z]*.py"))
        if not path.stem.startswith("torch")
    ]
    assert len(collectors) >= 6
    loaded = loaded_by(*collectors)
    foreign = loaded - set(sys.stdlib_module_names) - {"strobe", "__main__", "sitecustomize"}
    assert not {name for name in foreign if not name.startswith("_")}


def test_importing_strobe_is_light():
    heavy = {"numpy", "duckdb", "rich", "msgspec", "torch", "argparse", "subprocess"}
    assert not heavy & loaded_by("strobe")


def test_help_imports_no_command():
    code = "import sys; from strobe.cli import main; main(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not {"numpy", "duckdb", "rich", "strobe.cli.run", "strobe.cli.show"} & loaded


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
