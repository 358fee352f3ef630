"""Targets: one class each, from the intermediate form to what a system reads.

A new target is a module next to `routed/eos.py`, its templates in `templates/<name>/`, a reader in
`compilers/readers/` and a page in `docs/`. There is no list of targets: the folder of templates is
how one is found (`compilers/spec/target_names.py`).
"""
