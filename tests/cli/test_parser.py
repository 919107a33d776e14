"""Help reads well at any width and in both languages; mistakes say what to do."""

import pytest
from rich.cells import cell_len

from strobe.cli import COMMANDS, main
from strobe.cli.parser import Parser, about_text
from strobe.errors import UsageError
from strobe.messages import CHINESE, LANGUAGE_VARIABLE, LANGUAGES


@pytest.fixture
def parser() -> Parser:
    made = Parser(prog="strobe try")
    made.add_argument("--width", type=int, metavar="N", help="100% of the columns")
    made.add_argument("run", metavar="RUN")
    return made


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", [name for name, _, _ in COMMANDS])
def test_help_fits_the_terminal_and_is_in_the_users_language(monkeypatch, capsys, name, language):
    monkeypatch.setenv(LANGUAGE_VARIABLE, language)
    for columns in (80, 160):
        monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit):
            main([name, "--help"])
        lines = capsys.readouterr().out.splitlines()
        assert not [line for line in lines if cell_len(line) > min(columns, 100)]
        assert lines[0].startswith("用法：strobe" if language == CHINESE else "Usage: strobe")
        assert any("help" in line and ("退出" in line) == (language == CHINESE) for line in lines)


def test_a_percent_sign_is_printed_as_it_is(parser):
    assert "100% of the columns" in parser.format_help()


def test_the_meaning_of_an_example_is_a_column_and_continues_there():
    text = about_text("One.\n\n  strobe try RUN   what it does, in full\n  strobe x", 70)
    assert text.splitlines() == [
        "One.", "", "  strobe try RUN" + " " * 24 + "what it does, in full", "  strobe x",
    ]  # fmt: skip
    long = about_text("  strobe try RUN   " + "word " * 8, 60).splitlines()
    assert [line.index("word") for line in long] == [40, 40]


@pytest.mark.parametrize("words, what, hint", [
    (["RUN", "--widht", "3"], "unknown option or argument: --widht 3", "Did you mean --width?"),
    (["RUN", "more"], "unknown option or argument: more", "See: strobe try --help"),
    (["RUN", "--width"], "--width: a value is missing", "See: strobe try --help"),
    ([], "missing arguments: RUN", "See: strobe try --help"),
])  # fmt: skip
def test_mistakes_say_what_to_do(parser, words, what, hint):
    with pytest.raises(UsageError) as caught:
        parser.parse_args(words)
    assert caught.value.what == what and caught.value.hint.startswith(hint)


def test_mistakes_are_reported_in_the_users_language(monkeypatch):
    monkeypatch.setenv(LANGUAGE_VARIABLE, CHINESE)
    parser = Parser(prog="strobe try")
    parser.add_argument("run", metavar="RUN")
    with pytest.raises(UsageError) as caught:
        parser.parse_args([])
    assert str(caught.value) == "错误：缺少参数：RUN\n  建议：请查看：strobe try --help"
