"""The fuzzing harness works, and a few hundred random inputs go through it."""

import random
import shutil

import pytest
from fuzz.run import seeds
from fuzz.target import read_everything


@pytest.fixture(scope="module")
def inputs():
    """Small traces, cut and damaged in many ways; the same at each run."""
    source = random.Random(0)
    made = []
    for seed in seeds(None):
        for _ in range(100):
            data = bytearray(seed[: source.randint(1, len(seed))])
            for _ in range(source.randint(0, 4)):
                data[source.randrange(len(data))] = source.choice(b'"{}[],:0-9eE\\\x00\xff')
            made.append(bytes(data))
    return made


def test_whole_seeds_are_read(tmp_path):
    for number, seed in enumerate(seeds(None)):
        path = tmp_path / f"{number}"
        path.write_bytes(seed)
        assert read_everything(path, tmp_path) > 0


def test_nothing_but_our_own_errors(inputs, tmp_path):
    path = tmp_path / "input"
    for data in inputs:
        path.write_bytes(data)
        read_everything(path, tmp_path)
        shutil.rmtree(tmp_path / "unpacked", ignore_errors=True)
