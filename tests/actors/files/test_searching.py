"""Searching in files, and what a turn is shown of them."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio

from antiphon.document_records import NewStoreFile
from antiphon.embedding import Neighbour
from antiphon.errors import InvalidRequest, RecordNotFound
from antiphon.ids import LOCAL_USER, FileId, TenantId, UserId, VectorStoreId
from antiphon.records import User
from antiphon.retrieval import FilesAsked
from antiphon.sources import Comparison, FileSearch, Found, Ranking
from antiphon.testing.filing import FileRig, ScriptedEmbedding, ScriptedReader, running_files
from antiphon.testing.stored_documents import a_vector_store
from antiphon.views import FileFate

TEXTS = {
    "pumps.txt": ("The pump runs at 40 bar.", "It stands in hall seven."),
    "lamps.txt": ("The lamps are changed in March.",),
}
SOMEBODY = UserId("user_else")


async def filled(rig: FileRig) -> tuple[VectorStoreId, list[FileId]]:
    """A vector store with both files in it, ready."""
    files = [await rig.upload(name) for name in TEXTS]
    wanted = [
        NewStoreFile(file=file, attributes={"name": name})
        for file, name in zip(files, TEXTS, strict=True)
    ]
    made = await rig.store.run(
        lambda store: store.create_vector_store(a_vector_store(LOCAL_USER), wanted)
    )

    async def is_ready() -> bool:
        found = await rig.store.run(lambda store: store.vector_store(LOCAL_USER, made.id))
        return found is not None and found.counts.completed == len(files)

    await rig.until(is_ready)
    return made.id, files


def texts(found: tuple[Found, ...]) -> list[str]:
    return [each.text for each in found]


async def test_what_words_and_meaning_find_is_one_list(tmp_path: Path):
    reader, embedding = ScriptedReader(texts=TEXTS), ScriptedEmbedding()
    async with running_files(tmp_path, reader=reader, embedding=embedding) as rig:
        store, [pumps, _] = await filled(rig)
        embedding.near = [Neighbour(file=pumps, number=1, similarity=0.9)]

        found = await rig.service.search(LOCAL_USER, FileSearch(stores=(store,)), ["the pump"])

    assert texts(found) == ["The pump runs at 40 bar.", "It stands in hall seven."]
    assert all(0 < each.score <= 1 for each in found)
    assert embedding.asked == [("the pump", (store,), None)]


async def test_a_filter_leaves_only_files_with_such_attributes(tmp_path: Path):
    reader, embedding = ScriptedReader(texts=TEXTS), ScriptedEmbedding()
    async with running_files(tmp_path, reader=reader, embedding=embedding) as rig:
        store, [_, lamps] = await filled(rig)
        only = Comparison(operator="eq", key="name", value="lamps.txt")
        search = FileSearch(stores=(store,), filter=only)

        found = await rig.service.search(LOCAL_USER, search, ["pump lamps"])
        nothing = await rig.service.search(
            LOCAL_USER,
            FileSearch(stores=(store,), filter=Comparison(operator="eq", key="no", value=1)),
            ["pump"],
        )

    assert texts(found) == ["The lamps are changed in March."]
    assert embedding.asked[-1][2] == {lamps}
    assert nothing == ()


async def test_several_questions_are_answered_in_one_list_each_piece_once(tmp_path: Path):
    async with running_files(tmp_path, reader=ScriptedReader(texts=TEXTS)) as rig:
        store, _ = await filled(rig)
        search = FileSearch(stores=(store,), most=2)

        found = await rig.service.search(LOCAL_USER, search, ["pump", "lamps", "pump"])

    assert sorted(texts(found)) == ["The lamps are changed in March.", "The pump runs at 40 bar."]


async def test_what_scores_less_than_was_asked_for_is_left_out(tmp_path: Path):
    async with running_files(tmp_path, reader=ScriptedReader(texts=TEXTS)) as rig:
        store, _ = await filled(rig)
        search, asked = FileSearch(stores=(store,)), ["pump in hall seven"]
        both = await rig.service.search(LOCAL_USER, search, asked)
        strict = replace(search, ranking=Ranking(threshold=both[0].score))

        found = await rig.service.search(LOCAL_USER, strict, asked)

    assert len(both) == 2
    assert found == both[:1]


@pytest.mark.parametrize("how", ["away", "slow"])
async def test_while_meaning_can_not_be_searched_for_words_have_to_do(tmp_path: Path, how: str):
    embedding = ScriptedEmbedding()
    async with running_files(
        tmp_path, reader=ScriptedReader(texts=TEXTS), embedding=embedding, search_s=0.05
    ) as rig:
        store, _ = await filled(rig)
        embedding.is_away = how == "away"
        embedding.wait = None if how == "away" else trio.Event()

        found = await rig.service.search(LOCAL_USER, FileSearch(stores=(store,)), ["the pump"])

    assert texts(found) == ["The pump runs at 40 bar."]
    assert ("files_searched", "by_text") in rig.telemetry.reports


async def test_a_store_that_is_not_there_or_somebody_elses_or_expired_is_not_searched(
    tmp_path: Path,
):
    async with running_files(tmp_path, now_ms=lambda: 10**12) as rig:
        expired = a_vector_store(LOCAL_USER, expires_after_days=1)
        await rig.store.run(lambda store: store.create_vector_store(expired))
        mine = a_vector_store(LOCAL_USER, last_active_ms=10**12)
        await rig.store.run(lambda store: store.create_vector_store(mine))

        for user, id, error in (
            (LOCAL_USER, VectorStoreId("vs_nope"), RecordNotFound),
            (SOMEBODY, mine.id, RecordNotFound),
            (LOCAL_USER, expired.id, InvalidRequest),
        ):
            with pytest.raises(error):
                await rig.service.search(user, FileSearch(stores=(id,)), ["x"])


def asked(files: list[FileId], question: str = "the pump?", **fields: object) -> FilesAsked:
    named = {file: f"name of {file}" for file in files}
    return FilesAsked(
        user=LOCAL_USER, question=question, files=named, room=1000, may_cite=True, **fields
    )  # type: ignore[arg-type]


async def test_a_small_file_is_shown_whole_and_a_large_one_by_what_answers(tmp_path: Path):
    large = ("The pump runs at 40 bar.", *(f"Nothing in part {n}. " * 40 for n in range(30)))
    reader = ScriptedReader(texts={**TEXTS, "large.txt": large})
    async with running_files(tmp_path, reader=reader) as rig:
        files = [await rig.upload("lamps.txt"), await rig.upload("large.txt")]

        gathered = await rig.service.gather(asked(files))

    shown = [message.content for message, _ in gathered.shown]
    assert any("The lamps are changed in March." in each for each in shown)
    assert any("40 bar" in each for each in shown)
    assert not any("Nothing in part 7." in each for each in shown)
    assert [(each.file_id, each.fate) for each in gathered.files] == [
        (files[0], FileFate.WHOLE),
        (files[1], FileFate.EXCERPTS),
    ]
    assert [source.filename for source in gathered.sources] == ["lamps.txt", "large.txt"]
    ranks = [rank for message, rank in gathered.shown if "40 bar" in message.content]
    assert ranks == [0], "what was found may be left out, what is shown whole may not"
    assert sorted(reader.hurried) == ["lamps.txt", "large.txt"]


async def test_what_a_follow_up_leans_on_is_searched_for_too(tmp_path: Path):
    large = tuple(f"The feed pump, part {n}. " * 30 for n in range(30))
    reader, embedding = ScriptedReader(texts={**TEXTS, "large.txt": large}), ScriptedEmbedding()
    before = ("Where does the pump stand?", "Who are you?")
    async with running_files(tmp_path, reader=reader, embedding=embedding) as rig:
        store, _ = await filled(rig)
        search = FileSearch(stores=(store,))
        file = await rig.upload("large.txt")

        follow_up = await rig.service.gather(
            asked([file], "And what does it cost?", search=search, before=before)
        )
        complete = "In which month are the lamps of hall seven changed?"
        by_itself = await rig.service.gather(asked([], complete, search=search, before=before))

    together = "And what does it cost?\nWhere does the pump stand?"
    assert follow_up.queries == ("And what does it cost?", together)
    assert [question for question, _, _ in embedding.asked[:4]] == [*follow_up.queries] * 2
    assert "The pump runs at 40 bar." in texts(follow_up.found)
    assert by_itself.queries == (complete,)


async def test_a_file_that_is_not_ready_in_time_is_said_not_to_be(tmp_path: Path):
    async def before(name: str) -> None:
        await trio.sleep_forever()

    async with running_files(tmp_path, reader=ScriptedReader(before=before), wait_s=0.05) as rig:
        file = await rig.upload("slow.pdf")

        gathered = await rig.service.gather(asked([file]))

    [told] = gathered.files
    assert (told.fate, told.filename) == (FileFate.NOT_READY, "slow.pdf")
    text = "\n".join(message.content for message, _ in gathered.shown)
    assert 'The file "slow.pdf" is still being read.' in text
    assert "Say that instead of guessing" in text
    assert gathered.sources == ()


async def test_a_file_that_is_gone_or_somebody_elses_is_said_to_be_deleted(tmp_path: Path):
    async with running_files(tmp_path) as rig:
        await rig.store.run(lambda store: store.add_user(_somebody()))
        theirs = await rig.upload("secret.txt", SOMEBODY)

        gathered = await rig.service.gather(asked([theirs, FileId("file-gone")]))

    assert [each.fate for each in gathered.files] == [FileFate.DELETED] * 2
    assert "What secret.txt says" not in str(gathered)
    assert rig.reader.read_names == []


async def test_without_a_question_a_large_file_is_shown_from_its_beginning(tmp_path: Path):
    large = tuple(f"Part {n}. " * 60 for n in range(30))
    async with running_files(
        tmp_path, reader=ScriptedReader(texts={"large.txt": large}), results=2
    ) as rig:
        file = await rig.upload("large.txt")

        gathered = await rig.service.gather(asked([file], question=""))

    shown = [message.content for message, rank in gathered.shown if rank is not None]
    assert len(shown) == 2
    assert "Part 0." in shown[0]
    assert "Part 1." in shown[1]


async def test_nothing_is_looked_at_for_a_turn_without_files(tmp_path: Path):
    async with running_files(tmp_path) as rig:
        runs = rig.store.runs

        gathered = await rig.service.gather(asked([]))

    assert gathered.shown == ()
    assert rig.store.runs - runs <= 2, "only the ingestion's own look"


def _somebody() -> User:
    return User(id=SOMEBODY, tenant=TenantId("t"), name="else", created_ms=1)
