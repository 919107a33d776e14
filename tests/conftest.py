from pathlib import Path

import pytest

from tests.installed import install


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment with Strobe in it, editable."""
    pytest.importorskip("hatchling")
    return install(tmp_path_factory.mktemp("installed"), editable=True)
