"""The picture of memory: one rectangle for each block, in its place, with what it is."""

import xml.etree.ElementTree as ET

import pytest

from strobe.errors import MissingData
from strobe.show.formats import memory_flow
from tests.analyse.drawings import MODEL
from tests.analyse.tables.memory.test_memory_blocks import allocations
from tests.helpers import make_run

SVG = "{http://www.w3.org/2000/svg}"


def drawn(folder, *rows):
    run = make_run(folder / "run <1>", MODEL, allocations(*rows))
    memory_flow.write(run, folder / "flow.svg")
    return ET.parse(folder / "flow.svg").getroot()


def blocks(root) -> list[ET.Element]:
    return [rect for rect in root.iter(f"{SVG}rect") if rect.get("class", "").startswith("block")]


def texts(root) -> list[str]:
    return [text.text for text in root.iter(f"{SVG}text")]


def test_a_block_is_as_wide_as_its_time_and_as_high_as_its_bytes(tmp_path):
    mib = 1 << 20
    root = drawn(
        tmp_path, (0, 3 * mib, 1000, 1500), (3 * mib, mib, 1250, None), (0, mib, 1500, 2000)
    )
    found = {
        tuple(float(rect.get(name)) for name in ("x", "y", "width", "height"))
        for rect in blocks(root)
    }
    width, height = memory_flow._WIDTH, memory_flow._HEIGHT
    assert found == {
        (0, height / 4, width / 2, height * 3 / 4),
        (width / 4, 0, width * 3 / 4, height / 4),  # not seen freed: up to the end
        (width / 2, height * 3 / 4, width / 2, height / 4),
    }
    assert {"0 B", "1 MiB", "4 MiB", "0 ns", "200 ns", "1 µs", "address"} <= {*texts(root)}


def test_what_a_block_is_appears_on_hover_and_in_the_legend(tmp_path):
    root = drawn(tmp_path, (0, 2048, 1320, 1420), (4096, 1024, 1400, None))
    first, second = (rect.find(f"{SVG}title").text for rect in blocks(root))
    assert first.splitlines() == [
        "2.00 KiB, 100 ns", "operator: aten::relu", "module: net", "step: 2",
        "allocated at 0.000001 s, address 0x200000000000",
    ]  # fmt: skip
    assert second.startswith("1.00 KiB, 20 ns, not seen freed\nallocated at")
    assert {"net", "unknown", "run <1>: memory of cpu"} <= {*texts(root)}
    assert len({rect.get("fill") for rect in blocks(root)}) == 2


def test_only_so_many_blocks_are_drawn_and_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_flow, "MOST_BLOCKS", 2)
    rows = [(1000 * n, 100 * n, 0, 100) for n in range(1, 5)]
    root = drawn(tmp_path, *rows)
    assert len(blocks(root)) == 2
    (said,) = (text for text in texts(root) if "blocks" in text)
    assert said.startswith("The 2 largest and longest of 4 blocks, 70% of memory times time.")


def test_a_run_without_allocations_says_how_to_record_them(tmp_path):
    with pytest.raises(MissingData, match="allocations were not recorded") as caught:
        memory_flow.write(make_run(tmp_path / "run", MODEL), tmp_path / "flow.svg")
    assert "--profile-memory" in caught.value.hint
    assert not (tmp_path / "flow.svg").exists()
