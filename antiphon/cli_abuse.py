"""The command `antiphon abuse`: who is under suspicion at a running server, why, and the way
back."""

from pathlib import Path
from urllib.parse import quote

import click
import msgspec

from antiphon.cli_help import ManualGroup
from antiphon.cli_options import config_option, ops_address, ops_option, quietly
from antiphon.plain import plain

_USER = "user_"


class _Suspect(msgspec.Struct, frozen=True):
    kind: str
    id: str
    score: float
    action: str
    since: str | None
    until: str | None
    pardoned_until: str | None


class _Suspension(msgspec.Struct, frozen=True):
    user: str
    reason: str
    until: str | None


class _Overview(msgspec.Struct, frozen=True):
    mode: str
    subjects: tuple[_Suspect, ...]
    suspended: tuple[_Suspension, ...]


class _Signal(msgspec.Struct, frozen=True):
    signal: str
    points: float
    count: int
    first: str
    last: str
    now: float
    most: float | None


class _Mark(msgspec.Struct, frozen=True):
    signal: str
    points: float
    at: str
    detail: str


class _Evidence(msgspec.Struct, frozen=True):
    subject: _Suspect
    passed: dict[str, float] | None
    thresholds: dict[str, float]
    signals: tuple[_Signal, ...]
    answered: int
    tolerated_points: float
    recent: tuple[_Mark, ...]
    brought_by: dict[str, float]


class _Done(msgspec.Struct, frozen=True):
    written: bool


@click.group(cls=ManualGroup)
def abuse() -> None:
    """Users and addresses under suspicion. A SUBJECT is a user's id or an address, as `list` has
    it. Scores are each server's own: with several, ask each (--ops)."""


@abuse.command("list")
@ops_option
@config_option
@click.pass_obj
def list_subjects(outer: Path | None, config: Path | None, ops: str | None) -> None:
    """List who has a score, the highest first, and what is done; then who is suspended."""
    from antiphon.ops_client import look

    found = look(ops_address(quietly(config or outer), ops), "/ops/abuse", _Overview)
    click.echo(f"mode {found.mode}")
    for each in found.subjects:
        _line(each.kind, each.id, f"{each.score:.1f}", *_standing(each))
    for user in found.suspended:
        _line("suspended", user.user, f"until {user.until}", user.reason)


@abuse.command("explain")
@click.argument("subject")
@ops_option
@config_option
@click.pass_obj
def explain(outer: Path | None, config: Path | None, ops: str | None, subject: str) -> None:
    """Say what was counted against SUBJECT, and what followed."""
    from antiphon.ops_client import look

    found = look(ops_address(quietly(config or outer), ops), _path(subject), _Evidence)
    each = found.subject
    _line(each.kind, each.id, f"{each.score:.1f}", *_standing(each))
    if found.passed is not None:
        passed = found.passed
        click.echo(f"passed {passed['threshold']:g} with {passed['score']:.1f} points")
    steps = ", ".join(f"{action} at {at:g}" for action, at in found.thresholds.items())
    click.echo(f"thresholds: {steps or 'none'}")
    for signal in found.signals:
        most = "" if signal.most is None else f", at most {signal.most:g}"
        _line(
            signal.signal,
            f"{signal.now:.2f} points left of {signal.count} × {signal.points:g}{most}",
            f"{signal.first} to {signal.last}",
        )
    click.echo(
        f"less {found.tolerated_points:.2f}, for {found.answered} answered prompts (at most what "
        "blocked prompts and wrong keys have)"
    )
    for user, points in found.brought_by.items():
        _line("brought by", user, f"{points:.2f}")
    for mark in found.recent:
        _line(mark.at, mark.signal, f"{mark.points:g}", mark.detail)


@abuse.command("forgive")
@click.argument("subject")
@ops_option
@config_option
@click.pass_obj
def forgive(outer: Path | None, config: Path | None, ops: str | None, subject: str) -> None:
    """Forget what was counted against SUBJECT and serve it again, at once. A suspension by
    `antiphon users suspend` stays."""
    from antiphon.ops_client import command

    settings = quietly(config or outer)
    path = f"{_path(subject)}/forgive"
    done = command(ops_address(settings, ops), settings.ops_token, path, _Done)
    click.echo(f"{subject} is forgiven{_written(done)}")


@abuse.command("pardon")
@click.argument("subject")
@click.option("--hours", type=float, required=True, help="For so long; 0 ends a pardon.")
@ops_option
@config_option
@click.pass_obj
def pardon(
    outer: Path | None, config: Path | None, ops: str | None, subject: str, hours: float
) -> None:
    """Do nothing against SUBJECT for some hours, and serve it again at once. It is forgotten at a
    restart; `abuse.exempt` in the settings isn't."""
    from antiphon.ops_client import command

    settings = quietly(config or outer)
    body = {"hours": hours}
    path = f"{_path(subject)}/pardon"
    done = command(ops_address(settings, ops), settings.ops_token, path, _Done, body)
    told = f"for {hours:g} h" if hours else "no more"
    click.echo(f"{subject} is pardoned {told}{_written(done)}")


def _path(subject: str) -> str:
    kind = "user" if subject.startswith(_USER) else "address"
    return f"/ops/abuse/{kind}/{quote(subject)}"


def _standing(each: _Suspect) -> list[str]:
    fields = [each.action]
    if each.until is not None:
        fields += [f"since {each.since}", f"until {each.until}"]
    if each.pardoned_until is not None:
        fields.append(f"pardoned until {each.pardoned_until}")
    return fields


def _written(done: _Done) -> str:
    return "" if done.written else "; the database will know it once it answers"


def _line(*fields: str) -> None:
    click.echo("\t".join(map(plain, fields)))
