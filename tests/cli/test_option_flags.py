from strobe.cli import Parser
from strobe.cli.option_flags import add_option_flags, given_options
from strobe.model.options import CLI, OPTIONS, Options


def given(words: str) -> dict:
    parser = Parser(prog="strobe run")
    add_option_flags(parser)
    return given_options(parser.parse_args(words.split()))


def test_what_is_not_said_is_left_to_other_ways():
    assert given("") == {}


def test_every_option_of_the_command_line_has_a_flag():
    parser = Parser(prog="strobe run")
    add_option_flags(parser)
    flags = set(parser._option_string_actions)
    for name, option in OPTIONS.items():
        assert (f"--{name.replace('_', '-')}" in flags) == (CLI in option.metadata["ways"]), name


def test_flags_become_values():
    words = (
        "--with-stack --no-shapes --no-modules --no-samples --timeline-limit 7 --steps 3:5 "
        "--profile-framework null --formats csv,json --profiler-level 2 --no-with-flops "
        "--hardware-metrics cache --sample-rate 4"
    )
    assert given(words) == {
        "with_stack": True, "record_shapes": False, "modules": False, "sample_stacks": False,
        "timeline_limit": 7, "steps": "3:5", "profile_framework": None, "formats": "csv,json",
        "profiler_level": 2, "with_flops": False, "hardware_metrics": "cache", "sample_rate": 4,
    }  # fmt: skip
    assert Options.from_json(given(words)).formats == ("csv", "json")


def test_the_last_word_holds():
    assert given("--with-stack --no-with-stack") == {"with_stack": False}


def test_help_lists_the_flag_that_changes_the_default():
    parser = Parser(prog="strobe run")
    add_option_flags(parser)
    text = " ".join(parser.format_help().split())
    assert "--no-sample-stacks, --no-samples do not sample the Python stack" in text
    assert "--sample-stacks" not in text.replace("--no-sample-stacks", "")
    assert "--sample-ms MS host sampling interval (default: 500)" in text
    assert "--watch record a window only when steps slow down" in text
