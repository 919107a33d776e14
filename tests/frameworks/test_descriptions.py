"""What is true of one framework is in its description, and nowhere else."""

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

import strobe
from strobe.advise.fixes import fix
from strobe.frameworks import (
    FRAMEWORKS,
    JAX,
    MEGENGINE,
    MINDSPORE,
    TORCH,
    UNKNOWN,
    Framework,
    of_all,
    of_package,
    pattern_of_all,
)
from strobe.messages import gaps, texts_of

PACKAGE = Path(strobe.__file__).parent
# Modules of the room that are not a framework.
HELPERS = {"framework", "families", "graph_names"}
NAMES = re.compile(r"torch|jax|mindspore|megengine|optax|flax|jvp\(", re.IGNORECASE)


def texts(path: Path) -> set[str]:
    """The texts in the code of a module, without docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return {
        node.value for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
    }  # fmt: skip


@pytest.mark.parametrize("room", ["advise", "analyse"])
def test_rules_and_analyses_ask_the_descriptions(room):
    found = {
        (path.relative_to(PACKAGE).as_posix(), text)
        for path in (PACKAGE / room).rglob("*.py") for text in texts(path) if NAMES.search(text)
        if not (text.startswith("thread-oversubscription.only-"))  # the id of a message
    }  # fmt: skip
    assert not found


def test_every_file_is_listed():
    files = {path.stem for path in (PACKAGE / "frameworks").glob("[a-z]*.py")}
    assert files - HELPERS == {framework.name for framework in FRAMEWORKS}


def test_a_package_belongs_to_one_framework():
    packages = of_all(lambda framework: framework.packages)
    assert len(packages) == len({*packages})
    assert [of_package(name) for name in ("torch_npu", "jaxlib", "tinygrad")] == [
        TORCH, JAX, UNKNOWN,
    ]  # fmt: skip


def test_a_framework_without_a_description_says_nothing_of_another():
    fourth = Framework("tinygrad", packages=("tinygrad",))
    for field in fields(Framework):
        of_fourth, of_unknown = (getattr(one, field.name) for one in (fourth, UNKNOWN))
        if field.name in ("name", "packages", "checkpoints", "loader_starts", "debug_modes"):
            continue
        assert of_fourth == of_unknown, field.name
        assert not NAMES.search(str(of_fourth)), field.name


@pytest.mark.parametrize("name", texts_of("fix-any"))
def test_a_fix_has_neutral_words_for_a_fourth_framework(name):
    values = dict.fromkeys(gaps(texts_of("fix-any")[name]["en"]) - {"at", "line"}, "x")
    fourth = Framework("tinygrad")
    assert fix(name, fourth, **values) == fix(name, UNKNOWN, **values)
    assert not NAMES.search(fix(name, fourth, **values))


def test_every_framework_can_be_told_by_its_events():
    samples = {
        TORCH: ("aten::mm", "ProfilerStep#3"), JAX: ("PjitFunction(f)", "jit_train_step"),
        MINDSPORE: ("Default/network-Net/MatMul-op1",), MEGENGINE: (),
    }  # fmt: skip
    for framework, names in samples.items():
        for name in names:
            matching = [one for one in FRAMEWORKS if one.events and re.search(one.events, name)]
            assert matching == [framework], name


def test_patterns_of_all_match_what_any_of_them_matches():
    pattern = re.compile(pattern_of_all(lambda framework: framework.update_nodes))
    assert pattern.search("Default/optimizer-Adam/Mul-op1")
    assert not pattern.search("Default/network-Net/Mul-op1")
    assert re.search(pattern_of_all(lambda one: one.forward_nodes), "jit(f)/jvp(Net)/dot")
