import os

from strobe.ingest.building.opening import open_run_dir
from strobe.model.journal import RECORD, Mark
from strobe.web import tags
from strobe.web.answering.run_content import content_of, state_of
from tests.ingest.runs import BOOT_NS
from tests.web.served import write_run


def test_reading_and_tagging_a_run_do_not_change_its_content(tmp_path):
    run = write_run(tmp_path / "run", steps=3)
    before = content_of(run)
    open_run_dir(run).close()
    tags.write(run, ["a"])
    assert (run / "rank_0" / "tables").is_dir()
    assert content_of(run) == before


def test_a_change_of_what_was_recorded_does(tmp_path):
    run = write_run(tmp_path / "run", steps=3)
    before = content_of(run)
    facts = run / "rank_0" / "raw" / "facts.jsonl"
    status = facts.stat()
    os.utime(facts, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert content_of(run) != before


def test_marks_written_through_a_mapping_are_seen_while_a_run_is_live(tmp_path):
    run = write_run(tmp_path / "run", ended=None, steps=3)
    assert state_of(run)[1] == "live"
    before = content_of(run)
    journal = run / "rank_0" / "raw" / "journal-0001.bin"
    status = journal.stat()
    body = bytearray(journal.read_bytes())
    body[-240 : -240 + RECORD.size] = RECORD.pack(BOOT_NS + 10**10, 0, 0, 0, int(Mark.STEP))
    journal.write_bytes(body)
    os.utime(journal, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert journal.stat().st_size == status.st_size
    assert content_of(run) != before


def test_how_it_came_to_be_is_told_in_one_word(tmp_path):
    from strobe.model.manifest import read_manifest, write_manifest

    run = write_run(tmp_path / "run", ended="interrupted", steps=3)
    assert state_of(run)[1] == "interrupted"
    imported = write_run(tmp_path / "imported", steps=3)
    manifest = read_manifest(imported)
    manifest.recorded_by = "strobe import"
    write_manifest(imported, manifest)
    assert state_of(imported)[1] == "imported"
