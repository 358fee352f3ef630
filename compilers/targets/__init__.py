"""Targets: one class each, from the intermediate form to what a system reads.

A system is a folder: its class is in the module `target`, next to it are the names of its ports,
what its devices print, and how it is pushed. Its templates are in `templates/<name>/`. There is no
list of systems: the folder makes one known (`compilers/spec/target_names.py`). `routed/`,
`openflow/` and `devices/` have what several systems share, `push/` tools that push the files of
others.
"""
