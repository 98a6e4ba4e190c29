"""The settings of files that are searched in and shown: the section `files`, read and checked by
`settings`."""

import msgspec

from antiphon.errors import SettingsError
from antiphon.reading_files import Chunking


class FilesSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Numbers of tokens are estimates: what a file has is counted by no one vocabulary."""

    at_once: int = 2
    """Files that are worked on at once: while one is being read, another one is embedded."""
    chunk_tokens: int = 256
    """How long the pieces are that files are cut into, where a client doesn't say: as much as the
    embedding looks at together. Of longer ones a search finds a little more, for a prompt that is
    as much longer; of shorter ones less."""
    chunk_overlap_tokens: int = 64
    """How much of a piece the next one begins with; at most half of it."""
    small_file_tokens: int = 2000
    """A file in a message that has no more than that is shown whole; of larger ones, what answers
    the message. Never more than a quarter of a model's window, all such files together."""
    results: int = 5
    """Pieces that a turn is shown of what its search has found, where it doesn't say how many."""
    wait_s: float = 8.0
    """How long a turn waits for a file that is still being read. It is answered without it then,
    and says so."""
    search_s: float = 3.0
    """How long the search by meaning may take; then full text alone has to do."""
    index_mib: int = 1024
    """What the vectors may take that are at hand for searches; a million pieces take 800. Sets of
    files that were not searched for the longest time make room, and are loaded again when needed.
    """
    embedding_nice: int = 19
    """How far the embedding of files is behind everything else; 0…19. With 19, on Linux, it has
    only the time that processors are idle: where they never are, less lets it get on. Questions
    are never behind."""
    attempts: int = 5
    """How often the reading of a file is tried, where it isn't the file that is at fault."""
    inline_keep_s: float = 3600.0
    """How long a file is kept that came inside of a request that nothing is kept of."""
    images: int = 16
    """Images that a request may bring, and that a model is shown at once: of a conversation's, the
    newest."""
    image_mib: int = 16
    """What all of these may have together. A generation that is sent elsewhere holds a third more
    in memory until it has ended."""
    image_megapixels: float = 50.0
    """The most pixels of one image. Nothing is decoded here, but whoever shows it to a model
    decodes it."""

    @property
    def image_bytes(self) -> int:
        """`image_mib` in bytes."""
        return self.image_mib << 20

    @property
    def chunking(self) -> Chunking:
        """How files are cut, where a client doesn't say."""
        return Chunking(max_tokens=self.chunk_tokens, overlap_tokens=self.chunk_overlap_tokens)


def check_files(settings: FilesSettings) -> None:
    """What no single field's type can tell. Raises SettingsError."""
    if (problem := settings.chunking.problem()) is not None:
        raise SettingsError("files.chunk_tokens", problem)
    for name, most in (("at_once", 16), ("results", 50), ("attempts", 20)):
        if not 1 <= getattr(settings, name) <= most:
            raise SettingsError(f"files.{name}", f"must be from 1 to {most}")
    if settings.index_mib < 16:
        raise SettingsError("files.index_mib", "must be at least 16")
    if not 0 <= settings.embedding_nice <= 19:
        raise SettingsError("files.embedding_nice", "must be from 0 to 19")
    if settings.inline_keep_s < 60:
        raise SettingsError("files.inline_keep_s", "must be at least 60")
    if settings.image_mib > 256:
        raise SettingsError("files.image_mib", "must be at most 256")
    if settings.images > 500:
        raise SettingsError("files.images", "must be at most 500")
