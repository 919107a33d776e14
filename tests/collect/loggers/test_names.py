"""Tags of several runs and folders that one process writes are not mixed."""

from strobe.collect.loggers.names import Prefixes


def test_only_runs_after_the_first_have_a_prefix():
    prefixes = Prefixes()
    assert prefixes.of_run("id1", "calm-sun") == ""
    assert prefixes.of_run("id2", "blue-sea") == "blue-sea/"
    assert prefixes.of_run("id1", "renamed") == ""
    assert prefixes.of_run("id3") == "id3/"


def test_runs_of_the_same_name_are_numbered():
    prefixes = Prefixes()
    found = [prefixes.of_run(f"id{number}", "fold") for number in range(4)]
    assert found == ["", "fold/", "fold#2/", "fold#3/"]


def test_a_folder_is_named_from_where_it_parts_from_the_first():
    prefixes = Prefixes()
    assert prefixes.of_folder("runs/one") == ""
    assert prefixes.of_folder("runs/two") == "two/"
    assert prefixes.of_folder("runs/one/inner") == "inner/"
    assert prefixes.of_folder("other/two/deep") == "other/two/deep/"
    assert prefixes.of_folder("runs") == "runs/"
    assert prefixes.of_folder("runs/one") == ""


def test_folders_for_training_and_validation_are_both_named():
    prefixes = Prefixes()
    assert prefixes.of_folder("runs/one/train") == "train/"
    assert prefixes.of_folder("runs/one/val") == "val/"
