import json
import os

import pytest

from strobe.collect.on_demand.config import CONFIG_FILE, SETTLED_S, ConfigFile, wish, write_first
from strobe.errors import UsageError

# The file of MindSpore's guide, word for word.
GUIDE = {
    "start_step": 10, "stop_step": 10, "aicore_metrics": -1, "profiler_level": -1,
    "profile_framework": -1, "analyse_mode": 0, "profile_communication": False,
    "parallel_strategy": True, "with_stack": True, "data_simplification": False,
}  # fmt: skip


# As the documents of MindSpore 2.10 show it.
NEWER = {
    "start_step": 2, "stop_step": 5, "aic_metrics": "AiCoreNone", "profiler_level": "Level0",
    "analyse_mode": 0, "activities": ["CPU", "NPU"], "export_type": ["text"],
    "profile_memory": False, "mstx": False, "parallel_strategy": False, "with_stack": False,
    "data_simplification": True, "l2_cache": False, "analyse": True, "record_shape": False,
    "prof_path": None, "mstx_domain_include": [], "mstx_domain_exclude": [], "host_sys": [],
    "sys_io": False, "sys_interconnection": False,
}  # fmt: skip


class Config(ConfigFile):
    """Looked at twice, the second time when it has stood for a while."""

    def __init__(self, folder):
        self.now = 0.0
        super().__init__(folder, clock=lambda: self.now)

    def look(self):
        found = self.look_once()
        self.now += 2 * SETTLED_S
        return found or self.look_once()

    def look_once(self):
        return super().look()


@pytest.fixture
def config(tmp_path):
    return Config(tmp_path)


def put(config, content):
    """As an editor does that saves beside and renames."""
    text = content if isinstance(content, str) else json.dumps(content)
    beside = config.path.with_suffix(".new")
    beside.write_text(text)
    os.replace(beside, config.path)


def test_the_file_of_the_guide_is_understood():
    found = wish(GUIDE)
    assert (found.start, found.stop) == (10, 11)
    assert found.options["with_stack"] is True and found.options["analyse_mode"] == "sync"
    assert "profile_framework" not in found.options and "hardware_metrics" not in found.options


def test_the_first_file_asks_for_nothing(config):
    write_first(config.path.parent)
    written = json.loads(config.path.read_text())
    assert {name: type(value) for name, value in written.items()} == {
        name: type(value) for name, value in GUIDE.items()
    }
    assert config.look().start is None
    assert config.reason == ""


def test_a_file_that_is_there_is_not_written_over(config):
    put(config, GUIDE)
    write_first(config.path.parent)
    assert config.look().start == 10


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"start_step": "110"}, "start_step must be a whole number, not '110'"),
        ({"start_step": True}, "start_step must be a whole number"),
        ({"start_step": 11}, "stop_step (10) is before start_step (11)"),
        ({"start_step": 0}, "start_step is 0"),
        ({"stop_step": -1}, "stop_step is missing"),
        ({"stop_step": 10**30}, "stop_step cannot be"),
        ({"stop_step": 10**6}, "a window of 999,991 steps"),
        ({"generation": -5}, "generation cannot be -5"),
    ],
)
def test_a_window_that_cannot_be_is_refused(config, change, said):
    put(config, {**GUIDE, **change})
    assert config.look() is None
    assert said in config.reason


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"start_stepp": 1}, "Did you mean start_step?"),
        ({"nonsense": 1}, "ignoring the unknown key nonsense"),
        ({"prof_path": "elsewhere"}, "prof_path has no effect: windows are written into the run"),
        ({"sys_io": True}, "sys_io has no effect"),
        ({"with_stack": "yes"}, "with_stack must be true or false, not 'yes'"),
        ({"profiler_level": 7}, "ignoring a key: profiler_level cannot be 7"),
    ],
)
def test_a_key_that_cannot_be_followed_is_reported_and_the_rest_counts(config, change, said):
    put(config, {**GUIDE, **change})
    assert config.look().start == 10
    assert config.reason == ""
    assert len(config.notes) == 1 and said in config.notes[0]


def test_the_file_of_mindspore_2_10_is_understood(config):
    put(config, NEWER)
    found = config.look()
    assert (found.start, found.stop) == (2, 6)
    assert found.options["analyse_mode"] == "sync" and found.options["record_shapes"] is False
    assert config.notes == [] and config.reason == ""


def test_analyse_decides_over_its_mode(config):
    put(config, {**NEWER, "analyse": False})
    assert "analyse_mode" not in config.look().options
    put(config, {**NEWER, "analyse": True, "analyse_mode": -1})
    assert config.look().options["analyse_mode"] == "sync"


def test_the_next_good_file_counts_after_any_bad_one(config):
    for bad in ('{"start_step": 5', "", "[]", '{"start_step": "5"}'):
        put(config, bad)
        assert config.look() is None and config.reason
        config.path.unlink()
        assert config.look() is None and config.reason == f"{CONFIG_FILE} does not exist"
    put(config, GUIDE)
    # Twice, should the file system have given it the number of the one that was deleted.
    assert (config.look() or config.look()).start == 10
    assert config.reason == ""


def test_the_same_file_is_not_a_new_wish(config):
    put(config, GUIDE)
    assert config.look() is not None
    assert config.look() is None
    put(config, GUIDE)
    assert config.look() is None


def test_a_new_text_with_the_old_time_is_seen(config):
    put(config, GUIDE)
    config.look()
    status = config.path.stat()
    put(config, {**GUIDE, "stop_step": 11})
    os.utime(config.path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert config.look().stop == 12


def test_a_file_must_say_the_same_for_a_while(config):
    put(config, GUIDE)
    config.look()
    text = json.dumps({**GUIDE, "start_step": 50, "stop_step": 52})
    with open(config.path, "r+") as file:  # the first half of the new over the old: JSON, but torn
        file.write(text[: text.index("stop_step")])
    assert config.look_once() is None
    config.now += 0.6 * SETTLED_S
    config.path.write_text(text)
    assert config.look_once() is None and config.is_unsettled
    config.now += 0.6 * SETTLED_S
    assert config.look_once() is None
    config.now += 0.6 * SETTLED_S
    found = config.look_once()
    assert (found.start, found.stop) == (50, 53) and not config.is_unsettled


def test_a_torn_file_that_is_written_on_is_never_obeyed(config):
    put(config, {**GUIDE, "start_step": 10, "stop_step": 19})
    config.look()
    with open(config.path, "r+") as file:
        file.write('{"start_step": 15, ')
    assert config.look_once() is None  # 15 to 19 was never asked for
    put(config, {**GUIDE, "start_step": 15, "stop_step": 15})
    assert config.look().stop == 16


def test_an_older_generation_is_not_obeyed(config):
    put(config, {**GUIDE, "generation": 3})
    assert config.look().generation == 3
    put(config, {**GUIDE, "start_step": 5, "generation": 2})
    assert config.look() is None
    assert "its generation 2 is older than 3" in config.reason
    put(config, {**GUIDE, "stop_step": 20, "generation": 3})
    assert config.look().stop == 21
    put(config, {**GUIDE, "stop_step": 30})  # by hand, without one
    assert config.look().stop == 31


def test_unknown_options_are_an_error_with_the_nearest_name():
    with pytest.raises(UsageError) as error:
        wish({"start_step": 1, "stop_step": 2, "with_stak": True})
    assert "with_stack" in error.value.hint
