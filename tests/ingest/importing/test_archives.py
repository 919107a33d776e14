"""Archives: unpacked into the run, safely."""

import io
import stat
import tarfile
import zipfile
import zlib

import pytest
import zstandard

from strobe.cli import main
from strobe.errors import UnreadableTrace
from strobe.ingest.importing import archives
from tests.ingest.importing.test_importer import names_by_rank, problems, trace


def zipped(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(members: dict[str, bytes], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


PACKERS = {
    "zip": zipped,
    "tar": tarred,
    "tar.gz": lambda members: tarred(members, "w:gz"),
    "tgz": lambda members: tarred(members, "w:gz"),
    "tar.zst": lambda members: zstandard.compress(tarred(members)),
}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", PACKERS)
def test_an_archive_is_read_like_a_folder(tmp_path, suffix):
    file = tmp_path / f"traces.{suffix}"
    members = {"a/rank_3/t.json": trace("three"), "a/README": b"text", "b.json": trace("b", rank=1)}
    file.write_bytes(PACKERS[suffix](members))
    assert main(["import", str(file), "-o", str(tmp_path / "run"), "-q"]) == 0
    file.unlink()  # the run has its own copy
    (tmp_path / "run").rename(tmp_path / "moved")
    assert names_by_rank(tmp_path / "moved") == [(1, "b"), (3, "three")]
    assert problems(tmp_path / "moved") == {
        ("README", "its format is not known, and it was left out"): 1
    }
    for built in (tmp_path / "moved").glob("rank_*/tables/built.json"):
        built.unlink()  # built anew from what was unpacked
    assert names_by_rank(tmp_path / "moved") == [(1, "b"), (3, "three")]


def test_archives_in_a_folder_are_read_and_models_are_not(tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "one.zip").write_bytes(zipped({"rank0.json": trace("zero")}))
    (folder / "model.pt").write_bytes(zipped({"rank7.json": trace("never")}))
    (folder / "nested.zip").write_bytes(zipped({"in.zip": zipped({"rank9.json": trace("no")})}))
    assert main(["import", str(folder), "-o", str(tmp_path / "run"), "-q"]) == 0
    assert names_by_rank(tmp_path / "run") == [(0, "zero")]
    assert {source for source, _ in problems(tmp_path / "run")} == {"model.pt", "in.zip"}


UNSAFE = ("../out", "/etc/out", "a/../../out", "\\out", "C:\\out", "a\\..\\..\\out", "x" * 300)


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_names_that_lead_out_are_left_out(tmp_path, pack):
    file = tmp_path / "a.bin"
    file.write_bytes(pack({**dict.fromkeys(UNSAFE, b"x"), "good/a": b"g", "./b": b"g"}))
    before = {*tmp_path.rglob("*")}
    left_out = archives.unpack(file, tmp_path / "run" / "unpacked")
    made = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    place = tmp_path / "run" / "unpacked"
    assert made == {place / "good" / "a", place / "b"}
    assert left_out == {"a member's name leads out of the archive, or is no name": len(UNSAFE)}


def test_links_and_devices_are_left_out(tmp_path):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind in (("s", tarfile.SYMTYPE), ("h", tarfile.LNKTYPE), ("f", tarfile.FIFOTYPE),
                           ("c", tarfile.CHRTYPE)):  # fmt: skip
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        archive.addfile(tarfile.TarInfo("empty"))
    (tmp_path / "a.tar").write_bytes(out.getvalue())
    assert sum(archives.unpack(tmp_path / "a.tar", tmp_path / "t").values()) == 4
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["empty"]
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    assert archives.unpack(tmp_path / "a.zip", tmp_path / "z") == {
        "a member is a link or a device": 1
    }


@pytest.mark.parametrize("suffix", PACKERS)
def test_too_much_is_refused_and_leaves_nothing(tmp_path, suffix, monkeypatch, capsys):
    monkeypatch.setattr(archives, "_ALWAYS_ALLOWED", 1 << 20)
    monkeypatch.setattr(archives, "_LARGEST_RATIO", 1)
    file = tmp_path / f"bomb.{suffix}"
    members = {f"{n}.json": bytes(1 << 20) for n in range(8)}
    packed = PACKERS[suffix](members)
    file.write_bytes(packed[:-1024] if suffix == "tar" else packed)  # its size is its content
    if suffix == "tar":
        monkeypatch.setattr(archives, "_MOST_FILES", 3)
    assert main(["import", str(file), "-o", str(tmp_path / "run"), "-q"]) == 3
    assert "this archive" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_full_disk_is_told_before_anything_is_written(tmp_path, monkeypatch):
    file = tmp_path / "a.zip"
    file.write_bytes(zipped({"a": b"x" * 100}))
    monkeypatch.setattr(archives, "_LEAVE_FREE", 1 << 60)
    with pytest.raises(UnreadableTrace, match="not enough space"):
        archives.unpack(file, tmp_path / "t")


def test_sizes_are_not_believed(tmp_path):
    """A zip whose directory claims little and whose data is much."""
    raw = bytearray(zipped({"a.json": bytes(4 << 20)}))
    real = (4 << 20).to_bytes(4, "little")
    raw = bytes(raw).replace(real, (10).to_bytes(4, "little"))
    (tmp_path / "a.zip").write_bytes(raw)
    archives.unpack(tmp_path / "a.zip", tmp_path / "t")
    assert (tmp_path / "t" / "a.json").stat().st_size <= 10


@pytest.mark.parametrize("suffix", PACKERS)
def test_cut_and_damaged_archives_give_what_they_have(tmp_path, suffix):
    members = {
        f"{n}.json": zlib.compress(bytes([n]) * 9) + bytes(range(256)) * 90 for n in range(9)
    }
    whole = PACKERS[suffix](members)
    for end in (*range(0, len(whole), len(whole) // 60 + 1),):
        file = tmp_path / "cut"
        file.write_bytes(whole[:end] + b"\xff" * 9 + whole[end + 9 :] if end % 2 else whole[:end])
        folder = tmp_path / f"out{end}"
        try:
            archives.unpack(file, folder)
        except UnreadableTrace as error:
            assert "archive" in error.what


def test_a_header_that_claims_gigabytes_is_refused(tmp_path):
    info = tarfile.TarInfo("././@PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, 1 << 32
    (tmp_path / "a.tar").write_bytes(info.tobuf() + bytes(10240))
    with pytest.raises(UnreadableTrace, match="too long"):
        archives.unpack(tmp_path / "a.tar", tmp_path / "t")


def test_an_encrypted_member_is_told(tmp_path):
    raw = zipped({"a.json": b"x"})
    raw = raw.replace(b"PK\x03\x04\x14\x00\x00\x00", b"PK\x03\x04\x14\x00\x01\x00")
    raw = raw.replace(b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00")
    (tmp_path / "a.zip").write_bytes(raw)
    assert archives.unpack(tmp_path / "a.zip", tmp_path / "t") == {"a member is encrypted": 1}


def test_an_archive_without_traces_says_so(tmp_path, capsys):
    (tmp_path / "a.zip").write_bytes(zipped({"a": b"x", "b": b"y"}))
    assert main(["import", str(tmp_path / "a.zip"), "-o", str(tmp_path / "run")]) == 3
    assert "no known trace among 2 files" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]
