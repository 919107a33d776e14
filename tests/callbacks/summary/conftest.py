import pytest

from strobe.callbacks.summary import destination


@pytest.fixture(autouse=True)
def runs_end_with_the_test():
    yield
    for folder, one in list(destination._runs.items()):
        del destination._runs[folder]
        one.close("finished")
