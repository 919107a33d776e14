"""Packed files, whole, cut and damaged."""

import gzip

import pytest
import zstandard

from strobe.errors import UnreadableTrace
from strobe.ingest.formats import compressed

TEXT = bytes(range(256)) * 40_000


def read(path) -> tuple[bytes, list[str]]:
    said: list[str] = []
    return b"".join(compressed.blocks(path, said.append)), said


PACKERS = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "two gzip members": lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:]),
    "two zstd frames": lambda data: (
        zstandard.compress(data[:1000]) + zstandard.compress(data[1000:])
    ),
}


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_every_packing_gives_the_same_bytes(tmp_path, pack):
    path = tmp_path / "file"
    path.write_bytes(pack(TEXT))
    assert read(path) == (TEXT, [])
    assert compressed.beginning(path, 300) == TEXT[:300]


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_a_cut_file_gives_its_beginning_and_says_so(tmp_path, name):
    path = tmp_path / "file"
    data = PACKERS[name](b"".join(str(number).encode() for number in range(200_000)))
    path.write_bytes(data[: len(data) // 2])
    found, said = read(path)
    assert found.startswith(b"0123456789101112") and len(found) > 100_000
    assert said == ["the compressed file was cut short: its end is missing"]


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_damage_ends_the_file_and_is_told(tmp_path, name):
    path = tmp_path / "file"
    data = bytearray(PACKERS[name](b"".join(str(number).encode() for number in range(200_000))))
    data[len(data) // 2 : len(data) // 2 + 40] = b"\xff" * 40
    path.write_bytes(bytes(data))
    _, (what,) = read(path)
    assert what.startswith("the compressed data is damaged")


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_a_file_of_zeros_comes_in_small_blocks(tmp_path, name):
    path = tmp_path / "bomb"
    path.write_bytes(PACKERS[name](bytes(50 << 20)))
    assert max(map(len, compressed.blocks(path, print))) <= 8 << 20


def test_a_folder_cannot_be_read(tmp_path):
    with pytest.raises(UnreadableTrace, match="cannot be read"):
        list(compressed.blocks(tmp_path, print))
