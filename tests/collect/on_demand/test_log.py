import threading

from strobe.collect.on_demand.log import Decision, Entry, Log


def test_an_entry_of_a_number_is_written_once(tmp_path):
    log = Log(tmp_path)
    assert log.newest() == 0
    assert log.propose(Entry(1, 1, 10, 12, options={"with_stack": True}))
    assert not log.propose(Entry(1, 1, 20, 22))
    assert log.newest() == 1
    assert log.entry(1) == Entry(1, 1, 10, 12, options={"with_stack": True})
    assert log.entry(2) is None


def test_everybody_finds_the_same_decision(tmp_path):
    """Ranks that come to the step say no while the leader says go, a hundred times."""
    log = Log(tmp_path)
    for number in range(1, 101):
        found: list[Decision] = []
        barrier = threading.Barrier(5)

        def decide(rank, number=number, found=found, barrier=barrier):
            barrier.wait()
            found.append(log.decide(number, Decision(rank == 0, rank)))

        threads = [threading.Thread(target=decide, args=(rank,)) for rank in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 5 and len(set(found)) == 1
        assert log.decision(number) == found[0]


def test_old_entries_are_forgotten(tmp_path):
    log = Log(tmp_path)
    for number in range(1, 201):
        log.propose(Entry(number, number, 1, 2))
        log.decide(number, Decision(True, 0))
    assert log.newest() == 200
    assert len(list(tmp_path.iterdir())) <= 2 * 65


def test_what_is_not_ours_is_no_entry(tmp_path):
    (tmp_path / "000001.entry.json").write_text('{"number": 1}')
    (tmp_path / "notes.txt").write_text("hello")
    assert Log(tmp_path).newest() == 1
    assert Log(tmp_path).entry(1) is None
