from strobe.advise.evidence import gradient_exchange
from strobe.advise.evidence.gradient_exchange import Exchange, typical_exchange
from strobe.advise.training import Training
from tests.helpers import make_run


def drawn(tmp_path, *ranks, extra=None):
    """Twelve steps alike; of each rank the phases of a step, (name, µs) in their order."""
    lines = []
    for rank, phases in enumerate(ranks):
        now = 0
        for step in range(1, 13):
            begin = now
            for name, us in phases:
                lines.append(f"{rank}/steps phase:{name} {now}..{now + us * 1000} step={step}")
                now += us * 1000
            lines.append(f"{rank}/steps step:step~{step} {begin}..{now} step={step}")
    return Training(make_run(tmp_path, "\n".join(lines), extra))


BY_HAND = [("forward", 10), ("backward", 20), ("update", 1), ("all_reduce", 8), ("update", 2),
           ("all_reduce", 4), ("update", 3)]  # fmt: skip


def test_many_exchanges_are_one_sequence_with_what_lies_between(tmp_path):
    # A quarter of the calls (4 and 8 µs) are at most 4 µs long.
    assert typical_exchange(drawn(tmp_path, BY_HAND)) == Exchange(
        exposed_ns=14_000, between_ns=2_000, calls=2, sequences=1, latency_ns=4_000
    )


def test_of_very_many_steps_some_speak_for_all(tmp_path, monkeypatch):
    monkeypatch.setattr(gradient_exchange, "_MOST_STEPS", 3)
    training = drawn(tmp_path, BY_HAND)
    assert (
        len([*gradient_exchange._steps(training)]) == 3
    )  # 4, 8 and 12 of the nine that are judged
    assert typical_exchange(training).exposed_ns == 14_000


def test_a_pass_between_two_exchanges_parts_them(tmp_path):
    micro = [("forward", 10), ("backward", 20), ("all_reduce", 8), ("rest", 1)] * 2
    found = typical_exchange(drawn(tmp_path, [*micro, ("update", 3)]))
    assert (found.exposed_ns, found.between_ns, found.sequences) == (16_000, 0, 2)


def test_the_rank_that_waits_least_speaks_for_all(tmp_path):
    waiting = [("forward", 5), ("backward", 20), ("update", 1), ("all_reduce", 13),
               *BY_HAND[4:]]  # fmt: skip
    assert typical_exchange(drawn(tmp_path, BY_HAND, waiting)).exposed_ns == 14_000


def test_small_calls_tell_what_a_call_costs(tmp_path):
    drawing = drawn(tmp_path, BY_HAND).run
    text = "0/main collective:gloo 0..900 step=1\n0/main collective:gloo 2000..9000 step=1\n"
    args = {"collective_args": {"event_id": [0, 1], "operation": ["all_reduce"] * 2,
                                "bytes": [256, 4_000_000]}}  # fmt: skip
    lines = "\n".join(
        f"0/steps {kind}:{name.replace(' ', '~')} {ts}..{ts + dur} step={step}"
        for kind, name, ts, dur, step in drawing.sql(
            "SELECT kind, name, ts_ns, dur_ns, step FROM events ORDER BY id"
        ).fetchall()
    )
    training = Training(make_run(tmp_path / "small", text + lines, args))
    assert typical_exchange(training).latency_ns == 900


def test_steps_that_exchange_nothing_have_none(tmp_path):
    assert typical_exchange(drawn(tmp_path, [("forward", 10), ("update", 3)])) is None
