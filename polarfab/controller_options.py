"""The options by which verbs reach a controller: its URL, a token, the authority it is known by."""

from __future__ import annotations

from pathlib import Path

import click

HTTP = "http://127.0.0.1:8080"
"""Where a controller's management API usually is."""
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)

controller_url = click.option(
    "--to",
    "url",
    metavar="URL",
    default=HTTP,
    show_default=True,
    help="The controller's management API.",
)
token_file = click.option(
    "--token-file",
    type=_FILE,
    help="A file whose first line is a token that the controller accepts.",
)
authority = click.option(
    "--ca",
    "authority",
    type=_FILE,
    help="The authority of the controller's certificate (PEM), for https.",
)
