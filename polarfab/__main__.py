"""The commands `polarfab` and `python -m polarfab`.

Ctrl-C prints one line and no traceback, also while modules are imported.
"""

from __future__ import annotations

from polarfab.interruption import end_interrupted


def main() -> None:
    """Run the command line."""
    try:
        from polarfab.cli import main as run

        run()
    except KeyboardInterrupt as error:
        end_interrupted(error)


if __name__ == "__main__":
    main()
