"""A conversation as CommonMark. Pure.

Whoever reads it rendered sees the characters that were said: what Markdown or HTML would take for
markup is escaped, lines stay lines, and what isn't prose stands in a fence.
"""

import re
from datetime import UTC, datetime

import msgspec

from antiphon.records import Conversation, Item

_ROLES = {"user": "User", "assistant": "Assistant", "system": "System", "developer": "Developer"}
_MARKUP = re.compile(r"([\\`*_\[\]<>&~|$#^=])")
"""`&` begins an entity, `~ | $ ^ =` belong to common extensions."""
_LINE_START = re.compile(r"^(?:([-+])|(\d{1,9})([.)]))(?=\s|$|-)")
"""What makes a list or a rule. Escaping it elsewhere would only cost readability."""
_INDENT = re.compile(r"^[ \t]+")
_LINKED = re.compile(r"(?i)\b(https?|ftp)://|\b(www)\.")
_LINE_ENDS = re.compile(r"\r\n|[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]")


def heading_of(conversation: Conversation) -> str:
    """The top of the document."""
    title = " ".join((conversation.title or "Conversation").split())
    when = datetime.fromtimestamp(conversation.created_ms / 1000, UTC)
    return f"# {_inline(title)}\n\n{_inline(conversation.id)}, {when:%Y-%m-%d %H:%M} UTC\n"


def section_of(item: Item) -> str:
    """One item, with an empty line before it."""
    body = item.body
    match item.type:
        case "message":
            role = _ROLES.get(item.role or "", "Message")
            parts = "\n\n".join(filter(None, map(_part, body.get("content") or ())))
            note = "" if item.status in {None, "completed"} else f" ({item.status})"
            return f"\n## {role}{_inline(note)}\n\n{parts}\n"
        case "function_call" | "custom_tool_call":
            called = body.get("arguments", body.get("input", ""))
            return f"\n## Call of {_inline(str(body.get('name', '')))}\n\n{fenced(str(called))}\n"
        case "function_call_output" | "custom_tool_call_output":
            output = body.get("output", "")
            text = output if isinstance(output, str) else _json(output)
            return f"\n## Result\n\n{fenced(text)}\n"
        case "reasoning":
            thoughts = [*body.get("summary", ()), *(body.get("content") or ())]
            text = "\n\n".join(escaped(part["text"]) for part in thoughts)
            return f"\n## Reasoning\n\n{text}\n"
        case other:
            return f"\n## {_inline(other)}\n\n{fenced(_json(body))}\n"


def escaped(text: str) -> str:
    """Prose that renders as itself."""
    lines = [_line(line) for line in _LINE_ENDS.split(text)]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    written = []
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        # A backslash at a line's end is a hard break; before an empty line it would be one itself.
        written.append(f"{line}\\" if line and following else line)
    return "\n".join(written)


def fenced(text: str) -> str:
    """Text in a fence that is longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _part(part: dict[str, object]) -> str:
    match part:
        case {"text": str(text)}:
            return escaped(text)
        case {"refusal": str(text)}:
            return escaped(text)
        case {"file_id": str(file)}:
            return f"File {_inline(str(part.get('filename') or file))}"
        case _:
            return fenced(_json(part))


def _line(line: str) -> str:
    line = _MARKUP.sub(r"\\\1", line.rstrip())
    line = _LINKED.sub(lambda found: found[0].replace(":", "&#58;").replace(".", "&#46;"), line)
    line = _INDENT.sub(lambda found: "&nbsp;" * len(found[0].expandtabs(4)), line)
    return _LINE_START.sub(lambda found: _escaped_start(found), line)


def _escaped_start(found: re.Match[str]) -> str:
    mark, digits, end = found.groups()
    return f"\\{mark}" if mark else f"{digits}\\{end}"


def _inline(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
