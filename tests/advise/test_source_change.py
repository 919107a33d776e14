"""A fix as a diff of the user's source."""

import pytest

from strobe.advise.finding import Finding
from strobe.advise.source_change import Change, change_of, diff
from strobe.errors import MissingData
from tests.analyse.drawings import MODEL
from tests.helpers import make_run

WORKERS = {"num_workers": "2", "persistent_workers": "True"}


def changed(tmp_path, source: str, line: int = 1) -> str:
    """The lines that a diff adds."""
    file = tmp_path / "train.py"
    file.write_text(source, encoding="utf-8")
    text = diff(Change("DataLoader", WORKERS, file, line), tmp_path)
    assert text.startswith("--- a/train.py\n+++ b/train.py\n@@ ")
    assert file.read_text(encoding="utf-8") == source
    added = [line[1:] for line in text.splitlines()[2:] if line.startswith("+")]
    return "\n".join(added)


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("x = DataLoader(d)\n", "x = DataLoader(d, num_workers=2, persistent_workers=True)"),
        (
            "for x in torch.utils.data.DataLoader(d, 8, num_workers=0, shuffle=f(1)): pass\n",
            "for x in torch.utils.data.DataLoader(d, 8, num_workers=2, shuffle=f(1), "
            "persistent_workers=True): pass",
        ),
        (
            "x = DataLoader(d, 8, True, None, None, 0)\n",
            "x = DataLoader(d, 8, True, None, None, 2, persistent_workers=True)",
        ),
        ("x = DataLoader()\n", "x = DataLoader(num_workers=2, persistent_workers=True)"),
        (
            "größe = 'ü'; x = DataLoader(d,)  # ä\n",
            "größe = 'ü'; x = DataLoader(d, num_workers=2, persistent_workers=True,)  # ä",
        ),
        ("x = DataLoader(\n    d,\n    batch_size=8,\n)\n",
         "    batch_size=8, num_workers=2, persistent_workers=True,"),
    ],
    ids=["added", "replaced", "by position", "none there", "not ASCII", "several lines"],
)  # fmt: skip
def test_arguments_are_replaced_or_added(tmp_path, source, after):
    assert changed(tmp_path, source) == after


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("x = DataLoader(d, **options)\n", "from a dictionary"),
        ("x = DataLoader(*parts)\n", "from a list"),
        ("x = loader(d)\n", "has the file changed"),
        ("\nx = DataLoader(d)\n", "has the file changed"),
        ("a, b = DataLoader(d), DataLoader(e)\n", "no single call"),
        ("x = DataLoader(d, num_workers=2, persistent_workers=True)\n", "has this change already"),
        ("x = DataLoader(d\n", "cannot be read"),
        ("x = DataLoader(i for i in d)\n", "too unusual"),
    ],
)
def test_what_cannot_be_changed_says_why(tmp_path, source, why):
    with pytest.raises(MissingData, match=why):
        changed(tmp_path, source)


def finding(fix: str, where: str | None = "train.py:3") -> Finding:
    return Finding("", 0.5, 2.0, (fix,), (), where=where)


def test_the_call_and_its_arguments_come_from_the_finding(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("\n\nx = DataLoader(d)\n")
    place = {"rank": 0, "what": "data loader", "number": 1, "file": str(script), "line": 3}
    columns = {name: [value] for name, value in {**place, "function": "main"}.items()}
    run = make_run(tmp_path / "run", MODEL, {"places": columns})
    for fix in (
        "Set `num_workers=2, persistent_workers=True` on the DataLoader at train.py:3",
        "Set num_workers=2, persistent_workers=True on the DataLoader at train.py:3",
        "DataLoader(..., num_workers=2, persistent_workers=True) at train.py:3",
    ):
        assert change_of(finding(fix), run) == Change("DataLoader", WORKERS, script, 3)
    for found, why in (
        (finding("Vectorize it"), "not a change of one call"),
        (finding("Set fused=True on the Thing"), "does not know how Thing is called"),
        (finding("Set num_workers=2 on the DataLoader", None), "is not known"),
        (finding("Set num_workers=2 on the DataLoader", "other.py:3"), "which file other.py is"),
    ):
        with pytest.raises(MissingData, match=why):
            change_of(found, run)
