"""The commands `antiphon keys`, `users` and `db`: they read and write the database of the settings,
also while a server runs on it. Output for programs goes to standard output, remarks to the other.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from antiphon.cli_help import ManualGroup
from antiphon.cli_options import config_option, progress, quietly, shown_time

if TYPE_CHECKING:
    from antiphon.records import ApiKey


@click.group(cls=ManualGroup)
def keys() -> None:
    """API keys: who may use the API, and as whom."""


@keys.command("create")
@click.option("--user", metavar="NAME", help="Whose key; a new name makes a user. Else the local.")
@click.option("--tenant", metavar="NAME", help="The user's tenant; by default the local one.")
@click.option("--name", default="", help="What the key is for, as a reminder.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(["user", "operator"]),
    help="What it may do; can be given more than once. Else what a user may.",
)
@click.option("--expires", metavar="SPAN", help="After 12h, 30d, 8w; by default never.")
@config_option
@click.pass_obj
def create_key(
    outer: Path | None,
    config: Path | None,
    user: str | None,
    tenant: str | None,
    name: str,
    scopes: tuple[str, ...],
    expires: str | None,
) -> None:
    """Make a key. Its secret is printed once, alone on standard output, and stored nowhere."""
    from antiphon import admin
    from antiphon.records import Scope

    lifetime_s = None if expires is None else admin.seconds(expires)
    made = admin.with_store(
        quietly(config or outer),
        lambda store: admin.create_key(
            store,
            user=user,
            tenant=tenant,
            name=name,
            scopes=[Scope(scope) for scope in scopes],
            lifetime_s=lifetime_s,
        ),
    )
    scope_names = ", ".join(sorted(made.key.scopes))
    click.echo(f"{made.key.id} of {made.user.name} ({made.user.tenant}): {scope_names}", err=True)
    if made.is_first:
        click.echo(
            "It is the first key: from now on, every request to the API needs one.", err=True
        )
    click.echo("A running server knows it within seconds. It is not shown again:", err=True)
    click.echo(made.secret)


@keys.command("list")
@config_option
@click.pass_obj
def list_keys(outer: Path | None, config: Path | None) -> None:
    """List every key, revoked and expired ones too."""
    from antiphon import admin

    settings = quietly(config or outer)
    found = admin.with_store(settings, lambda store: store.keys())
    names = {user.id: user.name for user in admin.with_store(settings, lambda s: s.users())}
    for key in found:
        click.echo("\t".join([*_key_fields(key, names.get(key.user, key.user))]))
    if not found:
        click.echo("There are no keys yet: antiphon keys create", err=True)


def _key_fields(key: "ApiKey", user: str) -> list[str]:
    from antiphon import admin

    used = "never used" if key.last_used_ms is None else f"used {shown_time(key.last_used_ms)}"
    expires = "never expires" if key.expires_ms is None else f"expires {shown_time(key.expires_ms)}"
    scopes = ",".join(sorted(key.scopes))
    return [key.id, f"{key.prefix}…", user, scopes, admin.state_of(key), expires, used, key.name]


@keys.command("revoke")
@click.argument("key")
@config_option
@click.pass_obj
def revoke_key(outer: Path | None, config: Path | None, key: str) -> None:
    """Revoke a key, named by its id or its prefix as `list` shows them."""
    from antiphon import admin

    revoked = admin.with_store(
        quietly(config or outer), lambda store: admin.revoke_key(store, key.removesuffix("…"))
    )
    click.echo(f"{revoked.id} is revoked; a running server refuses it within seconds")


@keys.command("suspend")
@click.argument("key")
@click.option("--reason", required=True, help="What whoever uses it is told.")
@config_option
@click.pass_obj
def suspend_key(outer: Path | None, config: Path | None, key: str, reason: str) -> None:
    """Serve a key no more, until `resume`; its requests are told why."""
    from antiphon import admin

    found = admin.with_store(
        quietly(config or outer),
        lambda store: admin.suspend_key(store, key.removesuffix("…"), reason),
    )
    click.echo(f"{found.id} is suspended; a running server refuses it within seconds")


@keys.command("resume")
@click.argument("key")
@config_option
@click.pass_obj
def resume_key(outer: Path | None, config: Path | None, key: str) -> None:
    """Serve a suspended key again."""
    from antiphon import admin

    found = admin.with_store(
        quietly(config or outer),
        lambda store: admin.suspend_key(store, key.removesuffix("…"), None),
    )
    click.echo(f"{found.id} is {admin.state_of(found)}")


@click.group(cls=ManualGroup)
def users() -> None:
    """People and programs with data of their own."""


@users.command("list")
@config_option
@click.pass_obj
def list_users(outer: Path | None, config: Path | None) -> None:
    """List every user."""
    from antiphon import admin

    for user in admin.with_store(quietly(config or outer), lambda store: store.users()):
        training = "training on" if user.training else "training off"
        plan = "default plan" if user.plan is None else f"plan {user.plan}"
        state = "active" if user.suspended is None else f"suspended: {user.suspended}"
        made = shown_time(user.created_ms)
        fields = [user.id, user.tenant, user.name, training, made, plan, state]
        click.echo("\t".join(fields))


@users.command("set-plan")
@click.argument("user")
@click.argument("plan", required=False)
@click.option("--default", "to_default", is_flag=True, help="The default plan, instead of PLAN.")
@config_option
@click.pass_obj
def set_plan(
    outer: Path | None, config: Path | None, user: str, plan: str | None, to_default: bool
) -> None:
    """Give a user a PLAN that the settings define."""
    from antiphon import admin

    if (plan is None) != to_default:
        raise click.UsageError("Give a PLAN, or --default.")
    settings = quietly(config or outer)
    found = admin.with_store(settings, lambda store: admin.set_plan(settings, store, user, plan))
    click.echo(f"{found.id}: {plan or 'default plan'}; a running server knows it within seconds")


@users.command("suspend")
@click.argument("user")
@click.option("--reason", required=True, help="What they are told.")
@config_option
@click.pass_obj
def suspend_user(outer: Path | None, config: Path | None, user: str, reason: str) -> None:
    """Serve a user no more, until `resume`: their requests are answered 403 and told why."""
    from antiphon import admin

    found = admin.with_store(
        quietly(config or outer), lambda store: admin.suspend_user(store, user, reason)
    )
    click.echo(f"{found.id} is suspended; a running server refuses their keys within seconds")


@users.command("resume")
@click.argument("user")
@config_option
@click.pass_obj
def resume_user(outer: Path | None, config: Path | None, user: str) -> None:
    """Serve a suspended user again."""
    from antiphon import admin

    found = admin.with_store(
        quietly(config or outer), lambda store: admin.suspend_user(store, user, None)
    )
    click.echo(f"{found.id} is served again")


@users.command("export")
@click.argument("user")
@config_option
@click.pass_obj
def export_user(outer: Path | None, config: Path | None, user: str) -> None:
    """Print everything that is stored about a user, as JSON."""
    from antiphon import admin
    from antiphon.storage import Store

    async def work(store: Store) -> object:
        return await store.export_user((await admin.find_user(store, user)).id)

    found = admin.with_store(quietly(config or outer), work)
    click.echo(json.dumps(found, ensure_ascii=False, indent=2))


@users.command("erase")
@click.argument("user")
@click.option("--yes", is_flag=True, help="Don't ask.")
@config_option
@click.pass_obj
def erase_user(outer: Path | None, config: Path | None, user: str, yes: bool) -> None:
    """Remove a user with everything that is theirs, for good, and print the receipt."""
    from antiphon import admin

    settings = quietly(config or outer)
    known = admin.with_store(settings, lambda store: admin.find_user(store, user))
    if not yes:
        click.confirm(f"Erase {known.name} ({known.id}) and all their data?", abort=True, err=True)
    receipt = admin.with_store(settings, lambda store: admin.erase_user(settings, store, known.id))
    click.echo(
        json.dumps(
            {
                "id": receipt.id,
                "subject": receipt.subject,
                "deleted": shown_time(receipt.deleted_ms),
                "rows": receipt.rows,
                "contents": list(receipt.contents),
            },
            indent=2,
        )
    )


@users.command("training")
@click.argument("user")
@click.argument("allowed", type=click.Choice(["on", "off"]))
@config_option
@click.pass_obj
def set_training(outer: Path | None, config: Path | None, user: str, allowed: str) -> None:
    """Say whether a USER's conversations may be part of a training export: ALLOWED is on or
    off."""
    from antiphon import admin
    from antiphon.storage import Store

    async def work(store: Store) -> None:
        known = await admin.find_user(store, user)
        await store.set_training(known.id, allowed == "on")

    admin.with_store(quietly(config or outer), work)
    click.echo(f"training {allowed} for {user}")


@click.group(cls=ManualGroup)
def db() -> None:
    """The database: SQLite under the data directory, or the PostgreSQL of `database.url`."""


@db.command()
@config_option
@click.pass_obj
def status(outer: Path | None, config: Path | None) -> None:
    """Say which database it is and where its schema stands."""
    from antiphon import admin
    from antiphon.persistence import migrations

    found = admin.with_database(quietly(config or outer), migrations.status)
    state = f"{len(found.missing)} to apply" if found.missing else "up to date"
    click.echo(f"{found.database}: schema {found.version}, {state}")
    for version, name, applied_ms in found.applied:
        click.echo(f"{version}\t{name}\tapplied {shown_time(applied_ms)}")
    for name in found.missing:
        click.echo(f"-\t{name}\tmissing: antiphon db migrate")


@db.command()
@config_option
@click.pass_obj
def migrate(outer: Path | None, config: Path | None) -> None:
    """Bring the schema up to date, as every start of a server does too."""
    from antiphon import admin
    from antiphon.persistence import migrations

    settings = quietly(config or outer)
    with progress("migrating") as told:
        applied = admin.with_database(
            settings, lambda database: migrations.migrate(database, told=told)
        )
    click.echo("\n".join(f"applied {name}" for name in applied) or "the schema is up to date")


@db.command()
@config_option
@click.pass_context
def check(ctx: click.Context, config: Path | None) -> None:
    """Look for damage and contradictions; status 1 when there are any."""
    from antiphon import admin
    from antiphon.persistence.check import check_database

    settings = quietly(config or ctx.obj)
    with progress("checking") as told:
        report = admin.with_database(settings, lambda database: check_database(database, told))
    for table, rows in report.rows.items():
        click.echo(f"{table}\t{rows}")
    for problem in report.problems:
        click.echo(f"problem: {problem}")
    ctx.exit(0 if report.sound else 1)


@db.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--training", is_flag=True, help="Conversations to learn from, where users allow it.")
@config_option
@click.pass_obj
def export_database(outer: Path | None, config: Path | None, file: Path, training: bool) -> None:
    """Write everything into a new FILE, to be imported into another database of either kind. It
    holds all conversations: guard it like the database. Contents of uploaded files aren't in it.

    With --training, write conversations alone, as JSON lines of chat messages; those of users who
    don't allow it (`antiphon users training`) are left out, and no user is named."""
    from antiphon import admin
    from antiphon.persistence.training import export_training
    from antiphon.persistence.transfer import export_database as export

    settings = quietly(config or outer)
    if training:
        count = admin.with_database(settings, lambda database: export_training(database, file))
        click.echo(f"{count} conversations written to {file}")
        return
    with progress("exporting") as told:
        rows = admin.with_database(settings, lambda database: export(database, file, told))
    click.echo(f"{sum(rows.values())} rows written to {file}")


@db.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@config_option
@click.pass_obj
def import_database(outer: Path | None, config: Path | None, file: Path) -> None:
    """Fill an empty database from FILE, entirely or not at all."""
    from antiphon import admin
    from antiphon.persistence.bridge import TrioDatabase
    from antiphon.persistence.migrations import migrate as bring_up_to_date
    from antiphon.persistence.transfer import import_database as fill

    async def work(database: TrioDatabase) -> dict[str, int]:
        await bring_up_to_date(database)
        return await fill(database, file, told)

    settings = quietly(config or outer)
    with progress("importing") as told:
        rows = admin.with_database(settings, work)
    click.echo(f"{sum(rows.values())} rows read from {file}")
