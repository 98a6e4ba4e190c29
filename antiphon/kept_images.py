"""The bytes of images, where the contents of files are."""

from antiphon.ports import Contents


class KeptImages:
    """Reads them whole: how many bytes one may have was settled when it came."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    async def read(self, sha256: str) -> bytes | None:
        """None where they are no more. Raises StoreError."""
        reader = await self._contents.open(sha256)
        if reader is None:
            return None
        pieces = []
        try:
            while piece := await reader.read():
                pieces.append(piece)
        finally:
            reader.close()
        return b"".join(pieces)
