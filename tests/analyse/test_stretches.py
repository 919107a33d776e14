import duckdb

from strobe.analyse.stretches import MOST_STRETCHES, stretch


def numbers(moments: list[int]) -> list[int]:
    query = f"SELECT {stretch('m', str(min(moments)), str(max(moments)))} FROM moments"
    connection = duckdb.connect()
    connection.execute("CREATE TABLE moments (m BIGINT)")
    connection.executemany("INSERT INTO moments VALUES ($1)", [[m] for m in moments])
    return [row[0] for row in connection.sql(query).fetchall()]


def test_few_moments_have_a_stretch_each():
    assert numbers([7, 8, 9]) == [0, 1, 2]


def test_one_moment_is_one_stretch():
    assert numbers([5]) == [0]


def test_there_are_never_more_stretches_than_the_most():
    last = 10 * MOST_STRETCHES + 3
    found = numbers([0, 1, last // 2, last])
    assert found[0] == found[1] == 0
    assert found == sorted(found)
    assert MOST_STRETCHES // 2 < found[-1] < MOST_STRETCHES


def test_a_year_in_nanoseconds_does_not_overflow():
    assert numbers([0, 366 * 24 * 3600 * 10**9])[-1] < MOST_STRETCHES
