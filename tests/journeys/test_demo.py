import signal

import pytest

from tests.journeys.shell import Shell, shell

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration, pytest.mark.xdist_group("usual ports")]
__all__ = ["shell"]

TEXT = "# Ships\n\nA ship sails. It has a mast and a sail.\n\nSome ships have engines. They burn oil."


def test_the_demo_plays_the_chain_and_the_sailboat_and_tells_of_verified_webhooks_only(shell: Shell) -> None:
    (shell.folder / "ships.md").write_text(TEXT)
    report = shell.json("demo", "ships.md")
    made = ("outline.json", "summary.md", "report.json", "document.md")
    assert report["files"] == [f"out/ships.{name}" for name in made]
    assert "A ship sails." in (shell.folder / "out/ships.document.md").read_text()
    pictures = [(shell.folder / name).read_bytes() for name in report["pictures"]]
    assert [content[:4] for content in pictures] == [b"\x89PNG"] * 2
    assert pictures[0] != pictures[1]
    told = report["notifications"]
    assert all(one["verified"] and one["kid"] and one["jti"] for one in told)
    tasks = dict.fromkeys(one["task_id"] for one in told)
    assert len(tasks) == 3
    for task in tasks:
        heard = [one for one in told if one["task_id"] == task]
        numbers = [one["event"] for one in heard]
        assert (numbers[0], numbers, heard[-1]["state"]) == (1, sorted(set(numbers)), "completed")
    assert shell.running("state/demo") == []


def test_a_file_that_is_not_there_is_refused_before_anything_starts(shell: Shell) -> None:
    done = shell.run("demo", "nowhere.md")
    assert (done.returncode, done.stdout) == (2, "")
    assert "nowhere.md cannot be read" in done.stderr


def test_make_names_the_file_in_the_environment(shell: Shell) -> None:
    named = Shell(shell.folder, shell.environment | {"INPUT": "elsewhere.md"})
    assert "elsewhere.md cannot be read" in named.run("demo").stderr


def test_a_demo_that_is_ended_stops_what_it_has_started(shell: Shell) -> None:
    with shell.start("demo") as process:
        assert process.stdout
        for line in process.stdout:
            if line.startswith("✓ Starting the AWS emulator"):
                process.send_signal(signal.SIGTERM)
                break
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "✓ Stopping the emulator" in out
    assert shell.running("state/demo") == []


def test_a_checkout_plays_one_demo_at_a_time(shell: Shell) -> None:
    with shell.start("demo") as first:
        assert first.stdout
        assert first.stdout.readline()
        second = shell.run("demo")
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=60)
    assert second.returncode == 1
    assert "demo: another one runs in this checkout" in second.stderr
