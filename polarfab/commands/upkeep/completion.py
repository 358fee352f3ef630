"""`polarfab completion`: the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    bash:  polarfab completion bash > ~/.local/share/bash-completion/completions/polarfab
    zsh:   polarfab completion zsh > ~/.zfunc/_polarfab
    fish:  polarfab completion fish > ~/.config/fish/completions/polarfab.fish
    """
    from polarfab.cli import cli

    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"click cannot complete for {shell}")
    click.echo(completion(cli, {}, "polarfab", "_POLARFAB_COMPLETE").source())
