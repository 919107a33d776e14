"""Advice is in the words of the framework that trains, or in neutral ones."""

from pathlib import Path

import pytest

from strobe.advise import advise
from strobe.advise.finding import Finding
from strobe.advise.fixes import fix
from strobe.advise.rules import periodic_stall
from strobe.advise.training import Training
from strobe.frameworks import FRAMEWORKS, JAX, MEGENGINE, MINDSPORE, TORCH, UNKNOWN
from strobe.messages import gaps, texts_of
from tests.advise.drawings import of_framework, steps
from tests.advise.said import of_others
from tests.helpers import make_run
from tests.ingest.imports import imported

DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.parametrize("name", texts_of("fix-any"))
def test_a_fix_has_no_words_of_another_framework(name):
    for framework in FRAMEWORKS:
        own = texts_of(f"fix-{framework.name}") if framework is not UNKNOWN else {}
        text = own.get(name, texts_of("fix-any")[name])["en"]
        values = dict.fromkeys(gaps(text) - {"at", "line"}, "x")
        assert not of_others(fix(name, framework, **values), framework)


def test_every_fix_of_a_framework_has_neutral_words_too():
    for framework in {*FRAMEWORKS} - {UNKNOWN}:
        assert texts_of(f"fix-{framework.name}").keys() <= texts_of("fix-any").keys()


def test_the_place_of_a_fix_stands_in_its_gap():
    assert fix("keep-numbers", JAX, "a.py:3").endswith("`total += loss` at a.py:3")


def test_a_jax_training_is_not_told_to_use_no_grad(tmp_path):
    usual, long = {"gap": 100, "forward": 9900}, {"gap": 40_100, "forward": 9900}
    parts = [long if number % 10 == 0 else usual for number in range(1, 61)]
    verdict = periodic_stall.check(Training(of_framework(make_run(tmp_path, steps(*parts)), "jax")))
    assert isinstance(verdict, Finding)
    assert not any("torch" in one for one in verdict.fixes)


TRACES = {
    "megengine/real/chrome_timeline.4steps.json": MEGENGINE,
    "ascend/mindinsight/run_1": MINDSPORE,
    "ascend/torch_npu_2ranks": TORCH,
    "ascend/torch_npu_4ranks_pp2_dp2": TORCH,
    "mindspore/profiler_2.0/profiler": MINDSPORE,
    "mindspore/profiler_2.10/dist": MINDSPORE,
    "mindspore/minddata_2.10/md_slow": MINDSPORE,
    "xplane/mi300_jax_conv_minimal_08.xplane.pb": JAX,
    "torch/tracelens/mi300_ddp_resnet18.json.gz": TORCH,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACES)
def test_no_trace_gets_advice_of_another_framework(tmp_path, name):
    path = DATA / name
    if not path.exists():
        pytest.skip("shared data absent")
    run = imported(path, tmp_path)
    framework = Training(run).framework
    advice = advise(run)
    run.close()
    assert framework == TRACES[name]
    told = {
        rule: [text for text in (found.title, *found.fixes) if of_others(text, framework)]
        for rule, found in advice.findings.items()
    }
    told |= {"verdict": [advice.verdict] if of_others(advice.verdict, framework) else []}
    assert not {rule: texts for rule, texts in told.items() if texts}
