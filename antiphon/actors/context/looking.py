"""Looking up which images of a turn are there, in one unit of the store's work."""

from antiphon.actors.context.seeing import settled, wanted
from antiphon.events import Turn
from antiphon.files_settings import FilesSettings
from antiphon.ids import FileId, UserId
from antiphon.records import File
from antiphon.storage import Store, StoreAccess


async def with_images_found(
    turn: Turn, user: UserId, store: StoreAccess, settings: FilesSettings
) -> Turn:
    """The turn, whose images are there or marked as missing. Raises StoreError."""
    ids = wanted(turn, settings.images)
    if not ids:
        return turn

    async def read(store: Store) -> dict[FileId, File | None]:
        return {id: await store.file(user, id) for id in ids}

    files = await store.run(read)
    return settled(turn, files, most_bytes=settings.image_bytes)
