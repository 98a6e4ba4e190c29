"""Who gets a turn's input first: the judge, that has to be done with it soon, or the engine, that
is busy with it for long."""

import trio

from antiphon.events import Admit, Message
from antiphon.judging import Batch
from antiphon.testing.judges import ScriptedJudge, ScriptedJudges
from antiphon.testing.moderation import moderating
from antiphon.testing.rig import read_all, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink

TURNS = 30


async def test_the_judge_has_the_input_before_the_engine_does(autojump_clock):
    arrived: list[str] = []

    class Judge(ScriptedJudge):
        async def send(self, command):
            if isinstance(command, Batch):
                arrived.append(f"judge: {command.jobs[0].stage}")
            await super().send(command)

    class Engine(ScriptedLink):
        async def send(self, command):
            if isinstance(command, Admit):
                arrived.append("engine")
            await super().send(command)

    async with (
        moderating(ScriptedJudges(make=Judge)) as policy,
        running_rig(ScriptedLauncher(Engine), moderation=policy.service) as rig,
    ):
        await trio.testing.wait_all_tasks_blocked()
        for number in range(TURNS):
            said = Message(role="user", content=f"hello {number}")
            await read_all(await rig.open(f"turn-{number}", messages=(said,)))

    asked = [each for each in arrived if each != "judge: output"]
    assert asked == ["judge: input", "engine"] * TURNS
