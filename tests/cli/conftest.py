from pathlib import Path

import pytest

from strobe.cli import main
from strobe.ingest.building.opening import open_run_dir
from strobe.store.run import Run
from tests.analyse.drawings import MODEL, MODEL_ARGS
from tests.helpers import make_run


@pytest.fixture(scope="session")
def drawn(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("drawn"), MODEL, MODEL_ARGS)


@pytest.fixture
def strobe(drawn, tmp_path, monkeypatch, capsys):
    """Call `strobe` with a drawn run in the folder RUN: (exit code, stdout, stderr)."""
    (tmp_path / "RUN").mkdir()
    monkeypatch.chdir(tmp_path)

    def open_drawn(path: Path):
        if path.name != "RUN":
            return open_run_dir(path)
        return Run(drawn.path, drawn.manifest, sorted(drawn.path.glob("rank_*")))

    monkeypatch.setattr("strobe.ingest.building.opening.open_run_dir", open_drawn)

    def call(*words):
        code = main(list(words))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
