from strobe.model.blobs import write_blob
from strobe.store import blobs
from tests.helpers import make_run


def test_equal_contents_share_a_file_and_nothing_unfinished_is_left(tmp_path):
    first = write_blob(tmp_path / "blobs", b"a picture", "png")
    second = write_blob(tmp_path / "blobs", b"a picture", "png")
    other = write_blob(tmp_path / "blobs", b"another", "png")
    assert first == second != other
    assert sorted(path.name for path in (tmp_path / "blobs").iterdir()) == sorted([first, other])
    assert (tmp_path / "blobs" / first).read_bytes() == b"a picture"


def test_a_blob_of_built_tables_is_found_by_its_path(tmp_path):
    run = make_run(tmp_path, "0/steps step:one 0..1")
    with blobs.blobs_in(tmp_path / "rank_0" / "tables"):
        file = blobs.store_blob(b"contents", "npy")
    found = blobs.find_blob(run, 0, file)
    assert found is not None and found.read_bytes() == b"contents"
    assert blobs.find_blob(run, 1, file) is None


def test_outside_of_a_build_a_blob_is_only_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert blobs.store_blob(b"contents", "npy").startswith("tables/blobs/")
    assert not list(tmp_path.iterdir())


def test_a_path_that_leads_out_of_the_rank_is_refused(tmp_path):
    run = make_run(tmp_path / "run", "0/steps step:one 0..1")
    (tmp_path / "secret").write_text("a secret")
    (tmp_path / "run" / "rank_0" / "link").symlink_to(tmp_path / "secret")
    for file in ("../../secret", str(tmp_path / "secret"), "link"):
        assert blobs.find_blob(run, 0, file) is None
