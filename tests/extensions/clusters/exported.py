"""What `export` writes, without a folder."""

from compilers.entry_points import EXPORTS, load, registered


def exported(form, builds):
    """Names of files and their texts."""
    return dict(load(registered(EXPORTS)[form][0])(builds))
