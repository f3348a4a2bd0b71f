"""The leaderboard."""

from pathlib import Path

import pytest

from anabranch import leaderboard


def test_built_in_policies_and_one_in_python_have_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "class Mine:\n"
        "    def schedule(self, connection, chunk, subflows):\n"
        "        usable = [one for one in subflows if one.usable and one.id != chunk.last_sent_on]\n"
        "        there = [one for one in [one for one in usable if not one.stale] or usable if one.has_room]\n"
        "        return min(there, key=lambda one: one.smoothed_rtt).id if there else None\n"
    )
    page = tmp_path / "page.md"
    suite = ["--points", "4", "--competing", "2", "--page", str(page)]
    alike = "plain,scheduler.opportunistic_retransmission=off,scheduler.penalise=never"
    leaderboard.main(["--policy", alike, "--policy", "anabranch", "--scheduler", f"{file}:Mine", *suite])
    lines = [line.split("|") for line in page.read_text().splitlines() if line.startswith("| ") and "`" in line]
    by_policy = {line[2].strip(): line[3:] for line in lines}
    assert len(by_policy) == 3
    # The same scheduler in two languages: plain's is lowest_rtt. Lines name policies without commas.
    assert by_policy[f"`{file}:Mine`"][1:] == by_policy[f"`{alike.replace(',', '+')}`"][1:]


def test_classes_of_several_families_make_one_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import anabranch\n"
        "def windows(): return anabranch.RustCongestionControl('cubic')\n"
        "def paths(): return anabranch.RustPathManager('full_mesh')\n"
    )
    page = tmp_path / "page.md"
    mine = ["--congestion", f"{file}:windows", "--path-manager", f"{file}:paths"]
    suite = ["--points", "2", "--competing", "1", "--page", str(page)]
    leaderboard.main([*mine, "--policy", "congestion=cubic", *suite])
    lines = [line.split("|") for line in page.read_text().splitlines() if line.startswith("| ") and "`" in line]
    by_policy = {line[2].strip(): line[3:] for line in lines}
    assert by_policy[f"`{file}:windows {file}:paths`"][1:] == by_policy["`congestion=cubic`"][1:]
    assert len(by_policy) == 2


def test_mistakes_are_told(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no_such"):
        leaderboard.main(["--policy", "no_such"])
    with pytest.raises(SystemExit, match="is FILE"):
        leaderboard.main(["--scheduler", "nothing"])
    with pytest.raises(SystemExit, match=r"--path-manager nothing: it is FILE"):
        leaderboard.main(["--path-manager", "nothing"])
    empty = tmp_path / "empty.py"
    empty.write_text("")
    with pytest.raises(SystemExit, match="no 'Mine'"):
        leaderboard.main(["--scheduler", f"{empty}:Mine"])


def test_mistakes_are_told_before_anything_is_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def evaluated(*_: object, **__: object) -> None:
        raise AssertionError("it was evaluated")

    monkeypatch.setattr(leaderboard, "evaluate", evaluated)
    missing = str(tmp_path / "missing" / "page.md")
    for arguments, message in (
        (["--points", "0"], "there are 1 to 65536 points, and not 0"),
        (["--competing", "-1"], "there are 1 to 65536 points, and not -1"),
        (["--page", missing], f"{missing} is no file in a directory that is there"),
        (["--page", str(tmp_path)], f"{tmp_path} is no file in a directory that is there"),
    ):
        with pytest.raises(SystemExit):
            leaderboard.main(["--policy", "plain", *arguments])
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit, match="the file is there"):
        leaderboard.main(["--policy", "plain", "--scheduler", "nothing"])


def test_a_page_that_cannot_be_written_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = ["--policy", "plain", "--points", "1", "--competing", "1"]
    with pytest.raises(SystemExit, match=r"error: .*No space left on device"):
        leaderboard.main([*suite, "--page", "/dev/full"])
    assert "| 1 | `plain` |" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"error: .*File exists"):
        leaderboard.main([*suite, "--page", str(tmp_path / "page.md"), "--out", "/dev/null"])


def test_what_was_not_measured_is_last() -> None:
    good = leaderboard.Entry("good", 0.9, 0.0, 1.0, 0.0, 1.0, 1.0)
    unknown = leaderboard.Entry("unknown", float("nan"), 0.0, float("nan"), float("nan"), float("nan"), float("nan"))
    assert [one.policy for _, one in leaderboard.ranked([unknown, good])] == ["good", "unknown"]
