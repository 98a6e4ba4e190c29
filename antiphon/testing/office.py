"""DOCX files and archives made in code: orderly ones, and such as are meant to harm their
reader."""

import io
import zipfile
from collections.abc import Iterable, Mapping

_NAMESPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
)
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="xml" ContentType="application/xml"/></Types>'
)
_RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
    'relationships/officeDocument" Target="word/document.xml"/></Relationships>'
)
STYLES = f"""<w:styles {_NAMESPACES}>
<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style>
<w:style w:type="paragraph" w:styleId="Own"><w:name w:val="Own"/>
<w:basedOn w:val="berschrift2"/></w:style>
<w:style w:type="paragraph" w:styleId="Liste"><w:name w:val="List Bullet"/>
<w:pPr><w:numPr/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Normal"><w:name w:val="Normal"/></w:style>
</w:styles>"""


def paragraph(text: str, *, style: str | None = None, extra: str = "") -> str:
    """One `w:p`; `extra` is markup that comes after the text."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r>{extra}</w:p>"


def table(rows: Iterable[Iterable[str]]) -> str:
    """One `w:tbl`."""
    cells = (
        "<w:tr>" + "".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) + "</w:tr>"
        for row in rows
    )
    return f"<w:tbl>{''.join(cells)}</w:tbl>"


def docx(body: str, *, before: str = "", parts: Mapping[str, str] = {}) -> bytes:
    """A document of this markup; `before` comes before its outermost tag."""
    return archive(
        {
            "[Content_Types].xml": _TYPES,
            "_rels/.rels": _RELATIONS,
            "word/styles.xml": STYLES,
            "word/document.xml": (
                f'<?xml version="1.0" encoding="UTF-8"?>{before}'
                f"<w:document {_NAMESPACES}><w:body>{body}</w:body></w:document>"
            ),
        }
        | dict(parts)
    )


def with_external_entity(uri: str) -> bytes:
    """It asks its reader to fetch what is at `uri`, and to show it."""
    before = f'<!DOCTYPE w:document [<!ENTITY other SYSTEM "{uri}">]>'
    return docx(paragraph("&other;"), before=before)


def with_external_types(uri: str) -> bytes:
    """It asks its reader to fetch its own grammar."""
    return docx(paragraph("a text"), before=f'<!DOCTYPE w:document SYSTEM "{uri}">')


def with_multiplying_entities() -> bytes:
    """A kilobyte that stands for gigabytes: the "billion laughs"."""
    entities = '<!ENTITY a0 "ha">' + "".join(
        f'<!ENTITY a{level} "{f"&a{level - 1};" * 10}">' for level in range(1, 11)
    )
    return docx(paragraph("&a10;"), before=f"<!DOCTYPE w:document [{entities}]>")


def bomb(unpacked_mib: int) -> bytes:
    """A document whose one paragraph is so long, a thousandth of it packed."""
    return docx(paragraph(" " * (unpacked_mib * 2**20) + "x"))


def lying_bomb(unpacked_mib: int) -> bytes:
    """A bomb whose archive says that it unpacks to a few bytes."""
    data = bytearray(bomb(unpacked_mib))
    with zipfile.ZipFile(io.BytesIO(data)) as whole:
        size = whole.getinfo("word/document.xml").file_size.to_bytes(4, "little")
    for _ in range(data.count(size)):
        at = data.index(size)
        data[at : at + 4] = (5000).to_bytes(4, "little")
    return bytes(data)


def many_parts(count: int) -> bytes:
    """An archive of so many parts."""
    return archive({f"word/document{number}.xml": "" for number in range(count)})


def nested(depth: int) -> bytes:
    """Tables within tables."""
    start = "<w:tbl><w:tr><w:tc>"
    end = "</w:tc></w:tr></w:tbl>"
    return docx(start * depth + paragraph("deep") + end * depth)


def archive(parts: Mapping[str, str | bytes]) -> bytes:
    """A ZIP file of these parts."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    return out.getvalue()
