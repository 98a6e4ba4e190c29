"""Rules that change under a running server. Files are read in threads, so on a real clock."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from antiphon.actors.moderation import reloading
from antiphon.errors import RulesError
from antiphon.moderating import Judge
from antiphon.testing.judges import ScriptedJudge, ScriptedJudges
from antiphon.testing.moderation import RULES, Running, a_turn, moderating
from antiphon.verdicts import Stage, Verdict

BROKEN = RULES.replace('kind = "classifier"', 'kind = "clasifier"')


def version(number: int) -> str:
    return RULES.replace("rules-1", f"rules-{number}")


def replaced(path: Path, text: str) -> None:
    """As editors and deployments do it: the file is another one from one moment to the next."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.rename(path)


@asynccontextmanager
async def watching(path: Path, launcher: ScriptedJudges | None = None) -> AsyncIterator[Running]:
    path.write_text(RULES)  # noqa: ASYNC240 (a temporary folder)
    with trio.fail_after(30):
        async with moderating(launcher or ScriptedJudges(), rules=path) as running:
            await trio.testing.wait_all_tasks_blocked()
            yield running


async def look(running: Running) -> str:
    """What the watch does each second; the version in force then."""
    await running.service._reloading.look()
    return running.service.view().version


async def test_the_watch_looks_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    looks = trio.Event()
    real_look, seen = reloading.Reloading.look, 0

    async def look(self: reloading.Reloading) -> None:
        nonlocal seen
        await real_look(self)
        seen += 1
        if seen == 3:
            looks.set()

    monkeypatch.setattr(reloading.Reloading, "look", look)
    monkeypatch.setattr(reloading, "_LOOK_S", 0.01)
    async with watching(tmp_path / "rules.toml"):
        await looks.wait()


async def test_a_file_that_changes_is_in_force_without_anybody_asking(tmp_path: Path):
    path = tmp_path / "rules.toml"
    async with watching(path) as running:
        assert await look(running) == "rules-1"
        replaced(path, version(2))
        assert await look(running) == "rules-2"
        replaced(path, version(33))
        assert await look(running) == "rules-33"


async def test_settings_that_name_another_file_are_followed(tmp_path: Path):
    path, other = tmp_path / "rules.toml", tmp_path / "other.toml"
    other.write_text(version(2))
    async with watching(path) as running:
        running.settings.append(msgspec.structs.replace(running.settings[-1], rules=other))
        assert await look(running) == "rules-2"
        running.settings.append(msgspec.structs.replace(running.settings[-1], rules=None))
        await look(running)
        assert running.service.view().source == "default.toml"


async def test_a_broken_file_is_refused_with_line_and_key_and_the_old_rules_stay(tmp_path: Path):
    path = tmp_path / "rules.toml"
    async with watching(path) as running:
        service = running.service
        replaced(path, BROKEN)
        with capture_logs() as logs, pytest.raises(RulesError) as caught:
            await service.reload("test")

        assert caught.value.line == BROKEN[: BROKEN.index("clasifier")].count("\n") + 1
        assert "match" in caught.value.key
        # The watch may have seen it, too.
        [line] = [entry for entry in logs if entry.get("source") == "test"]
        assert (line["file"], line["line"], line["in_force"]) == (
            str(path),
            caught.value.line,
            "rules-1",
        )
        view = service.view()
        assert (view.version, view.refused) == ("rules-1", str(caught.value))
        assert service.concern() == f"rules refused: {caught.value}"
        assert service.problem() is None
        [verdict] = await service.judge_for(a_turn()).judge(Stage.INPUT, ["a text"])
        assert verdict == Verdict(version="rules-1")

        replaced(path, version(2))
        assert await service.reload("test") == "rules-2"
        assert service.concern() is None


async def test_the_watch_says_only_once_what_is_wrong(tmp_path: Path):
    path = tmp_path / "rules.toml"
    async with watching(path) as running:
        with capture_logs() as logs:
            replaced(path, BROKEN)
            for _ in range(3):
                assert await look(running) == "rules-1"

    assert [entry["event"] for entry in logs].count("rules_refused") == 1


async def test_a_file_that_is_gone_is_refused_and_taken_when_it_is_back(tmp_path: Path):
    path = tmp_path / "rules.toml"
    async with watching(path) as running:
        path.unlink()
        assert await look(running) == "rules-1"
        assert "No such file" in str(running.service.view().refused)
        replaced(path, version(2))
        assert await look(running) == "rules-2"
        assert running.service.view().refused is None


async def test_rules_that_a_judge_can_not_load_are_not_in_force(tmp_path: Path):
    path, launcher = tmp_path / "rules.toml", ScriptedJudges()
    async with watching(path, launcher) as running:
        launcher.link.unusable = "it says no"
        replaced(path, version(2))

        with pytest.raises(RulesError, match="it says no"):
            await running.service.reload("test")

        assert running.service.view().version == "rules-1"


async def test_rules_are_not_in_force_before_a_judge_has_them(tmp_path: Path):
    path = tmp_path / "rules.toml"
    launcher = ScriptedJudges(make=lambda: ScriptedJudge(loads=True))
    async with watching(path, launcher) as running:
        replaced(path, version(2))
        with pytest.raises(RulesError, match="no judge process is there"):
            await running.service.reload("test")
        assert running.service.view().version == "rules-1"

        assert running.service.view().refused is None, "nothing is wrong with them"
        launcher.link.has_loaded()
        await trio.testing.wait_all_tasks_blocked()

        assert await look(running) == "rules-2"


async def test_other_rules_may_not_take_a_version_that_is_in_use(tmp_path: Path):
    path = tmp_path / "rules.toml"
    async with watching(path) as running:
        replaced(path, RULES.replace("apple pie", "pear pie"))

        with pytest.raises(RulesError) as caught:
            await running.service.reload("test")

        assert caught.value.key == "version"


async def test_a_list_of_phrases_is_part_of_the_rules(tmp_path: Path):
    path, phrases = tmp_path / "rules.toml", tmp_path / "phrases.txt"
    listed = RULES.replace('version = "rules-1"\n', "").replace(
        'phrases = ["apple pie"]', 'file = "phrases.txt"'
    )
    phrases.write_text("apple pie\n")
    path.write_text(listed)
    launcher = ScriptedJudges()
    with trio.fail_after(30):
        async with moderating(launcher, rules=path) as running:
            await trio.testing.wait_all_tasks_blocked()
            before = await look(running)
            replaced(phrases, "pear pie\n")
            assert await look(running) != before

    assert [load.lists for load in launcher.link.sent if hasattr(load, "lists")] == [
        {"phrases.txt": "apple pie\n"},
        {"phrases.txt": "pear pie\n"},
    ]


async def test_a_guard_that_nobody_serves_and_an_upstream_without_url_are_refused(tmp_path: Path):
    path = tmp_path / "rules.toml"
    matches = {
        'kind = "guard", model = "other", format = "llama_guard"': "no pool serves the guard",
        'kind = "upstream"': "policy.upstream_url",
    }
    async with watching(path) as running:
        for match, problem in matches.items():
            replaced(path, RULES.replace('kind = "classifier"', match).replace("-1", "-2"))
            with pytest.raises(RulesError, match=problem) as caught:
                await running.service.reload("test")
            assert caught.value.key == "rules.no-harm"


async def test_fifty_reloads_under_load_and_each_verdict_names_the_one_version_that_made_it(
    tmp_path: Path,
):
    """A judge is asked by one version only, also while others come and go."""
    path = tmp_path / "rules.toml"
    launcher = ScriptedJudges(make=lambda: ScriptedJudge(batch_s=0.001))
    path.write_text(RULES)
    names: set[tuple[str, ...]] = set()
    turns = 0
    with trio.fail_after(60):
        async with moderating(
            launcher, rules=path, workers=2, queue=10_000, deadline_s=60.0
        ) as running:
            service = running.service
            async with trio.open_nursery() as nursery:
                over = trio.Event()

                async def keep_asking(number: int) -> None:
                    nonlocal turns
                    while not over.is_set():
                        judge: Judge = service.judge_for(a_turn())
                        seen = [judge.version]
                        for _ in range(3):
                            turns += 1
                            [verdict] = await judge.judge(Stage.INPUT, [f"{number} {turns}"])
                            assert not verdict.not_run
                            seen.append(verdict.version)
                        names.add(tuple(seen))
                        judge.close()

                for number in range(8):
                    nursery.start_soon(keep_asking, number)
                for number in range(2, 52):
                    replaced(path, version(number))
                    assert await service.reload("test") == f"rules-{number}"
                over.set()

            assert service.view().versions_in_use == ("rules-51",)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert all(link.loaded == {"rules-51"} for link in launcher.links)

    assert all(len(set(seen)) == 1 for seen in names)
    assert len({seen[0] for seen in names}) > 25, "turns have lived under many of them"


async def test_a_disk_that_does_not_answer_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "rules.toml"
    async with watching(path) as running:
        reader, writer = os.pipe()
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        path.unlink()
        pipe.rename(path)
        try:
            with trio.move_on_after(0.2) as scope:
                await running.service.reload("test")
            [verdict] = await running.service.judge_for(a_turn()).judge(Stage.INPUT, ["a text"])
        finally:
            with path.open("w") as file:  # lets the thread go
                file.write("format = 1\n")
            os.close(reader)
            os.close(writer)

    assert scope.cancelled_caught
    assert not verdict.not_run
