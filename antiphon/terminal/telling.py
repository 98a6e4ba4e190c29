"""What is said beside answers, in words: what went wrong and what to do next, what became of an
answer, of its files and of the conversation. Pure but for the clock that the figures read."""

import time
from collections.abc import Iterable, Sequence

from antiphon.errors import ApiRefused, ApiUnreachable
from antiphon.terminal.answer import Stopped
from antiphon.terminal.wire import Conversation, Item, Part, Response, ShownFile, ShownImage

_SEEN = frozenset({"whole", "excerpts"})
_UNSEEN_PICTURES = {
    "no_vision": "it can't see any",
    "deleted": "deleted meanwhile",
    "left_out": "there are too many to show all of them",
}


def advice_on(error: ApiRefused | ApiUnreachable) -> str:
    """What went wrong, and what to do next."""
    match error:
        case ApiUnreachable(is_cut=True):
            return (
                f"The connection to {error.url} is lost ({error.reason}), and has not come back. "
                "The answer may still run there; what it said is kept, and shown by /show or "
                "`antiphon chat --continue` once the server can be reached."
            )
        case ApiUnreachable():
            return (
                f"{error}. Is a server running there? Start one with `antiphon serve` (or "
                "`make serve`) in another terminal, or name another address with --url."
            )
        case ApiRefused(status=401):
            return (
                f"{error} Put a key into ANTIPHON_API_KEY; whoever runs the server makes one with "
                "`antiphon keys create --user NAME`."
            )
        case ApiRefused(retry_after_s=float(seconds)):
            return f"{error} Try again in {max(1, round(seconds))} s."
        case _:
            return str(error)


def told_of_stop(stopped: Stopped) -> str:
    """What is known after somebody has stopped an answer, and no more."""
    match stopped:
        case Stopped.STOPPED:
            return "stopped; the server has ended it"
        case Stopped.ENDED:
            return "it had ended already; /show shows it"
        case Stopped.ENDING:
            return "the server was told to stop it, and has not ended it yet; /stop tells it again"
        case Stopped.NOT_ASKED:
            return "stopped before it was asked"
        case Stopped.UNKNOWN:
            return (
                "The message had left, and no answer to it runs yet. If one begins after all, "
                "/stop ends it and /show shows it."
            )


def told_of_lost_stop(reason: str) -> str:
    """Where nobody could be told."""
    return f"The server could not be told to stop ({reason}). It may still run: /stop ends it."


def warnings(response: Response, asked: str) -> list[str]:
    """What people should know of an answer beside its text."""
    told = []
    problem, reason = response.error, response.incomplete_details
    if response.status == "failed":
        told.append(f"It failed: {problem.message if problem else 'nobody knows why'}")
    elif response.status == "cancelled":
        told.append("It was stopped.")
    elif reason is not None and reason.reason == "max_output_tokens":
        told.append("It reached the longest answer, and is not whole.")
    elif reason is not None and reason.reason == "content_filter":
        told.append("The policy has ended it.")
    elif reason is not None:
        told.append(f"It is not whole: {reason.reason.replace('_', ' ')}.")
    if response.model != asked:
        told.append(f"Answered by {response.model}, not by {asked}.")
    for fate in ("summarised", "dropped"):
        items = sum(
            run.items
            for run in response.context.runs
            if run.fate == fate and run.kind in {"history", "input"}
        )
        if items:
            told.append(f"Of the conversation, {items} items were {fate} to fit the model.")
    return told


def figures(response: Response, began: float, first_at: float | None) -> str:
    tokens = 0 if response.usage is None else response.usage.output_tokens
    now = time.monotonic()
    told = [f"{tokens} tokens"]
    if first_at is not None:
        told.append(f"first after {first_at - began:.2f} s")
        if tokens > 1 and now > first_at:
            told.append(f"{(tokens - 1) / (now - first_at):.0f} a second")
    return ", ".join(told)


def fates(files: Iterable[ShownFile], *, is_seen: bool) -> str:
    """What the model was shown of files, in a line: of those that it saw something of, or of those
    that it didn't."""
    return "; ".join(_fate(file) for file in files if (file.fate in _SEEN) == is_seen)


def pictures(images: Sequence[ShownImage]) -> list[str]:
    """How many pictures of the conversation the model was not shown, and why."""
    told = []
    for fate, why in _UNSEEN_PICTURES.items():
        count = sum(image.fate == fate for image in images)
        if count:
            told.append(f"The model didn't see {_counted(count)}: {why}.")
    return told


def told_of_blindness(names: Sequence[str], model: str, seeing: Sequence[str]) -> str:
    """Pictures are to go to a model that sees none; `seeing` are those that do."""
    which = f"{names[0]} is a picture" if len(names) == 1 else f"{', '.join(names)} are pictures"
    if seeing:
        way = f"These can: {', '.join(seeing)}. Choose one with /model, or with --model"
    else:
        way = "No model of this server can: say in words what is on it"
    return f"{which}, and {model} can't see any. {way}. /detach leaves out what is attached."


def _counted(count: int) -> str:
    return "1 picture" if count == 1 else f"{count} pictures"


def sources(items: Iterable[Item]) -> str:
    """The files that answers are from, in a line; nothing where they name none."""
    cited = {each.file_id: each for item in items for each in item.cited}
    names = [each.filename or each.file_id for each in cited.values()]
    return f"from {', '.join(names)}" if names else ""


def listed(files: Iterable[Part]) -> list[str]:
    return [f"+ {file.filename or file.file_id}" for file in files]


def _fate(file: ShownFile) -> str:
    match file.fate:
        case "whole":
            what = "shown whole"
        case "excerpts" if file.excerpts == 1:
            what = "1 excerpt"
        case "excerpts":
            what = f"{file.excerpts} excerpts"
        case "not_ready":
            what = "not shown, still being read: ask again in a moment"
        case "failed":
            what = f"not shown, it couldn't be read: {file.reason or 'nobody knows why'}"
        case "deleted":
            what = "not shown, it was deleted"
        case fate:
            what = fate.replace("_", " ")
    return f"{file.filename}: {what}"


def named(conversation: Conversation) -> str:
    if conversation.title:
        return f"“{conversation.title}” ({conversation.id})"
    return conversation.id
