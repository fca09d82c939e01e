"""`completion`: what a shell needs to complete our commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from mainspring.errors import UsageError

VARIABLE = "_MAINSPRING_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands and options.

    bash: eval "$(mainspring completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc; fish: write it to
    ~/.config/fish/completions/mainspring.fish.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"completion: click knows nothing of {shell}")
    click.echo(kind(ctx.find_root().command, {}, "mainspring", VARIABLE).source())
