"""What `--help` shows of every command beside its options: examples, as manual pages have them."""

import click

from antiphon.cli_examples import EXAMPLES


class ManualCommand(click.Command):
    """Its examples come after its options."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(ctx, formatter)
        super().format_epilog(ctx, formatter)


class ManualGroup(click.Group):
    """Its commands, and its groups, are like that, too."""

    command_class: type[click.Command] | None = ManualCommand
    group_class: type[click.Group] | type[type] | None = type

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(ctx, formatter)
        super().format_epilog(ctx, formatter)


def write_examples(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Each with what it is for: what can be copied stands in a line of its own, unbroken."""
    examples = EXAMPLES.get(name_of(ctx), ())
    if not examples:
        return
    with formatter.section("Examples"):
        for line, purpose in examples:
            formatter.write(f"{'':{formatter.current_indent}}# {purpose}\n")
            formatter.write(f"{'':{formatter.current_indent}}{line}\n\n")


def name_of(ctx: click.Context) -> str:
    """As `keys create`: without the program's name, which depends on how it was called."""
    names: list[str] = []
    at: click.Context | None = ctx
    while at is not None and at.parent is not None:
        names.insert(0, at.info_name or "")
        at = at.parent
    return " ".join(names)
