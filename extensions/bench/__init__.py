"""Our speed against that of peers, in one run."""

ENTRY_POINTS = {"polarfab.verbs": {"bench": "extensions.bench.bench_verb:command"}}
