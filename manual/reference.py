"""Reference pages, made from the code: verbs, keys, Python, targets, metrics, events, JSON."""

from __future__ import annotations

import ast
import inspect
import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir
from dataclasses import fields, is_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeGuard, get_args, get_type_hints

import click
from click.testing import CliRunner

import polarfab
from compilers.entry_points import FUNCTIONS, registered
from compilers.spec.fabric_file import schema
from compilers.spec.node_systems import CONTROL_KEYS
from compilers.spec.target_names import target_names
from compilers.spec.value_checks import BLOCK_CHECKS, FABRIC_CHECKS, INVENTORY_CHECKS
from compilers.tables.build import Build
from compilers.targets.node_facts import FabricFacts, NodeFacts
from compilers.targets.target_lookup import target
from controller.switches.events import KINDS
from inventory.field_docs import field_docs
from polarfab.cli import cli

ROOT = Path(__file__).parents[1]
WIDTH = 96
"""The letters in a line of help, and in a signature on one line."""


def pages() -> Iterator[tuple[str, str]]:
    """Place and text of every page."""
    yield "reference/verbs.md", "".join(verbs())
    yield "reference/keys.md", "".join(keys())
    yield "reference/api.md", "".join(api())
    yield "reference/variables.md", "".join(variables())
    yield "reference/metrics.md", "".join(metrics())
    yield "reference/events.md", "".join(events())
    yield "reference/json.md", "".join(json_forms())


def _head(title: str, about: str) -> str:
    """The begin of a page."""
    made = "*Made from the code: `pytest --update-golden tests/manual` writes this page.*"
    return f"# {title}\n\n{about}\n\n{made}\n\n"


def verbs() -> Iterator[str]:
    """The help of every verb."""
    yield _head("Verbs", "Every verb, its arguments and its options, as `--help` prints them.")
    with click.Context(cli, info_name="polarfab") as top:
        for name, command in _commands(cli, top):
            yield f"## {name}\n\n"
            yield from _help(command, f"polarfab {name}")


def _help(command: click.Command, called: str) -> Iterator[str]:
    """The help of a command, and of the commands in it."""
    settings = {**cli.context_settings, "terminal_width": WIDTH, "show_default": True}
    with click.Context(command, info_name=called, **settings) as ctx:
        yield f"```text\n{command.get_help(ctx)}\n```\n\n"
        if isinstance(command, click.Group):
            for name, inner in _commands(command, ctx):
                yield from _help(inner, f"{called} {name}")


def _commands(group: click.Group, ctx: click.Context) -> Iterator[tuple[str, click.Command]]:
    """The commands of a group that help shows, by name."""
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if command is not None and not command.hidden:
            yield name, command


def keys() -> Iterator[str]:
    """The keys of fabric.yaml and inventory.yaml, by their schemas."""
    yield _head(
        "Keys", "Every key of `fabric.yaml` and `inventory.yaml`, its type and its default."
    )
    for kind in ("fabric", "inventory"):
        whole = schema(kind)
        yield f"## {kind}.yaml\n\n"
        yield from _keys(whole)
        for name, part in sorted(whole.get("$defs", {}).items()):
            if "properties" in part:
                yield f"### {kind}: {name}\n\n"
                yield from _keys(part)
    yield "## Checks between values\n\n"
    for check in (*FABRIC_CHECKS, *INVENTORY_CHECKS, *BLOCK_CHECKS):
        yield f"- {check.line}\n"
    yield (
        "\nAddresses of management, gateways and servers are ones that an interface may have. "
        "A GUID is neither 0 nor all ones.\n"
    )


def _keys(part: dict[str, Any]) -> Iterator[str]:
    """The table of the keys of a mapping, by its schema."""
    if "description" in part:
        yield f"{_plain(part['description'])}\n\n"
    yield "| key | type | default | what |\n|---|---|---|---|\n"
    needed = part.get("required", [])
    for key, value in part["properties"].items():
        default = "required" if key in needed else _code(value.get("default"))
        meaning = _cell(value.get("description", ""))
        yield f"| `{key}` | {_type(value)} | {default} | {meaning} |\n"
    yield "\n"


def _type(value: dict[str, Any]) -> str:
    """The type of a key in words, by its schema, such as "list of text"."""
    if "$ref" in value:
        return str(value["$ref"]).rpartition("/")[2]
    if "enum" in value:
        return ", ".join(f"`{word}`" for word in value["enum"])
    if "const" in value:
        return _code(value["const"])
    options = value.get("anyOf") or value.get("oneOf")
    if options:
        return " or ".join(dict.fromkeys(_type(option) for option in options))
    if value.get("type") == "array":
        return f"list of {_type(value.get('items', {}))}"
    json_type = value.get("type", "any")
    return json_type if isinstance(json_type, str) else " or ".join(json_type)


def _code(value: object) -> str:
    """A default as JSON; "" for none, and for what is empty."""
    return "" if value in (None, "", [], {}) else f"`{json.dumps(value)}`"


def _plain(text: str) -> str:
    """A docstring as Markdown: sections as headings, what they list as bullets."""
    lines = []
    for line in text.split("\n"):
        if line in ("Args:", "Raises:", "Returns:", "Attributes:", "Yields:", "Example:"):
            lines.append(f"**{line}**\n")
        elif item := re.match(r"    (\w+): (.*)", line):
            lines.append(f"- `{item[1]}`: {item[2]}")
        else:
            lines.append(
                line.replace("        ", "  ", 1) if lines and line[:8].isspace() else line
            )
    return "\n".join(lines)


def api() -> Iterator[str]:
    """The public names of the package, with signatures and docstrings."""
    yield _head(
        "Python API",
        "Every public name of `import polarfab`, those of extensions included; "
        "[Python](python.md) shows them at work.",
    )
    for name in [*polarfab.__all__, *registered(FUNCTIONS)]:
        value = getattr(polarfab, name)
        yield f"## {name}\n\nIn `{value.__module__}`.\n\n"
        yield from _documented(value, f"polarfab.{name}")
        if name == "Fabric":
            yield from _methods(value)


def _methods(owner: type) -> Iterator[str]:
    """The public methods and properties of a class."""
    for name, member in inspect.getmembers(owner):
        # The default of a field has the docstring of its type: from 3.13 on even None has one.
        is_documented = inspect.getdoc(member) != inspect.getdoc(type(member))
        if is_documented and not name.startswith("_"):
            yield f"### {owner.__name__}.{name}\n\n"
            yield from _documented(member, name)


def _documented(value: Any, called: str) -> Iterator[str]:
    """The signature of a function, and the docstring of a function or class, with its fields."""
    if callable(value) and not inspect.isclass(value):
        yield f"```python\n{called}{_signature(value)}\n```\n\n"
    yield f"{_plain(inspect.getdoc(value) or '')}\n\n"
    if is_dataclass(value):
        docs = field_docs(value)
        names = [f.name for f in fields(value) if f.name in docs and not f.name.startswith("_")]
        listed = [f"- `{name}`: {docs[name]}\n" for name in names]
        yield "".join([*listed, "\n"]) if listed else ""


def _signature(function: Callable[..., Any]) -> str:
    """A signature, a parameter a line where it is long."""
    words = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))
    words = words.replace("(self, ", "(").replace("(self)", "()")
    if len(words) < WIDTH:
        return words
    inside, _, result = words[1:].rpartition(")")
    parameters = re.split(r", (?=[*\w]+(?::|,|$))", inside)
    return "(\n" + "".join(f"    {parameter},\n" for parameter in parameters) + f"){result}"


def variables() -> Iterator[str]:
    """Of each target: options, and the variables of its templates; the types of these."""
    yield _head(
        "Options and variables of targets",
        "What `--set` takes, and what templates of your own may use: `vars`, `fabric`, for a "
        "switch `facts`, and what each target adds.",
    )
    types: dict[str, type] = {}
    for name in target_names():
        yield from _target(name, types)
    yield "## Types\n\n"
    _add_types(NodeFacts | FabricFacts, types)
    listed: set[str] = set()
    while listed < types.keys():
        for name in sorted(types.keys() - listed):
            listed.add(name)
            about = _plain(inspect.getdoc(types[name]) or "")
            yield f"### {name}\n\n{about}\n\n{''.join(_fields(types[name], types))}\n"


def _target(name: str, types: dict[str, type]) -> Iterator[str]:
    """A target's options and its templates' variables; types of these go to `types`."""
    system = target(name)
    yield f"## {name}\n\nWrites {system.summary}.\n\n"
    if system.all_options:
        yield "| `--set` | values | default | what for |\n|---|---|---|---|\n"
        for word, option in system.all_options.items():
            yield _row(f"`{word}`", option.possible, _code(option.default), option.description)
        yield "\n"
    if system.agreements:
        yield "| key of `fabric.yaml` | default | what for |\n|---|---|---|\n"
        for word, option in system.agreements.items():
            yield _row(f"`{CONTROL_KEYS[word]}`", _code(option.default), option.description)
        yield "\n"
    for facts_type in dict.fromkeys(system.files.values()):
        files = ", ".join(f"`{file}`" for file, of in system.files.items() if of is facts_type)
        about = _plain(inspect.getdoc(facts_type) or "")
        yield f"**{files}**: {about}\n\n{''.join(_fields(facts_type, types))}\n"


def _row(*cells: str) -> str:
    """A row of a table."""
    return f"| {' | '.join(map(_cell, cells))} |\n"


def _fields(owner: type, types: dict[str, type]) -> Iterator[str]:
    """The table of a type with fields; such types of its fields and methods go to `types`."""
    yield "| variable | type | what |\n|---|---|---|\n"
    docs = field_docs(owner)
    type_as_written = _types_as_written(owner)
    for name, hint in get_type_hints(owner).items():
        if name.startswith("_"):
            continue
        _add_types(hint, types)
        if type_as_written.get(name):
            meaning = _cell(docs.get(name, ""))
            yield f"| `{name}` | `{_cell(type_as_written[name])}` | {meaning} |\n"
    for name, member in inspect.getmembers(owner):
        meaning = (inspect.getdoc(member) or "").split("\n")[0]
        if isinstance(member, property) and not name.startswith("_"):
            yield f"| `{name}` | | {_cell(meaning)} |\n"
        elif inspect.isfunction(member) and not name.startswith("_"):
            _add_types(get_type_hints(member).get("return"), types)
            yield f"| `{name}{_signature(member)}` | | {_cell(meaning)} |\n"


def _types_as_written(owner: type) -> dict[str, str]:
    """The type of each field of a dataclass or of a named tuple, as its class has it."""
    if is_dataclass(owner):
        return {field.name: str(field.type) for field in fields(owner)}
    hints = {name: owner.__annotations__[name] for name in getattr(owner, "_fields", ())}
    return {name: getattr(hint, "__forward_arg__", str(hint)) for name, hint in hints.items()}


def _add_types(hint: Any, types: dict[str, type]) -> None:
    """Add the dataclasses and named tuples that a type names, but for the build itself."""
    if isinstance(hint, type) and hint is not Build:
        is_named_tuple = issubclass(hint, tuple) and hasattr(hint, "_fields")
        if is_dataclass(hint) or is_named_tuple:
            types.setdefault(hint.__name__, hint)
    for inner in get_args(hint):
        _add_types(inner, types)


def _cell(text: str) -> str:
    """A text in a table of Markdown."""
    return text.replace("|", "\\|")


def metrics() -> Iterator[str]:
    """Names, meanings and labels of the metrics, read from the module that makes them."""
    about = "What a controller with `--http` gives to Prometheus at `/metrics`."
    large = (
        "In a fabric of more than 5,000 ports, the counters `polarfab_port_…` are sums over a"
        " switch, and their label `port` is empty."
    )
    histograms = (
        "A histogram has the series `_bucket`, `_sum`, `_count` and `_created`; its row shows the"
        " name without these endings."
    )
    yield _head("Metrics", f"{about} {large} {histograms}")
    yield "| metric | what | labels |\n|---|---|---|\n"
    text = (ROOT / "controller/management/metrics.py").read_text()
    tree = ast.parse(text)
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For)]
    in_counter_loops: set[int] = set()
    labels_of_loops: dict[int, list[str]] = {}
    for loop in loops:
        in_loop = [id(node) for node in ast.walk(loop.iter)]
        if "'_counter'" in "".join(map(ast.dump, loop.body)):
            in_counter_loops.update(in_loop)
        calls = [node for each in loop.body for node in ast.walk(each) if _is_metric(node)]
        labels = [label for call in calls for label in _texts(call.args)]
        labels_of_loops |= dict.fromkeys(in_loop, labels)
    for node in ast.walk(tree):
        words = _texts(node.args if isinstance(node, ast.Call) else getattr(node, "elts", []))
        if len(words) > 1 and re.fullmatch(r"[a-z_]+", words[0]) and words[1].endswith("."):
            counts = id(node) in in_counter_loops or "'_counter'" in ast.dump(node)
            total = "_total" if counts else ""
            name = f"polarfab_{words[0].removeprefix('polarfab_')}{total}"
            labels = words[2:] or labels_of_loops.get(id(node), [])
            yield f"| `{name}` | {words[1]} | {', '.join(f'`{label}`' for label in labels)} |\n"


def _is_metric(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether a node is a call of `_gauge` or `_counter`, which make a metric."""
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Name) and called.id in ("_gauge", "_counter")


def _texts(nodes: Sequence[ast.AST]) -> list[str]:
    """The values of those nodes that are constant texts."""
    values = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return [value for value in values if isinstance(value, str)]


ABOUT_EVENTS = """\
`polarfab controller --json` prints each event as a JSON object on a line of its own, and
`GET /api/events` ([management](../how-to/management.md)) lists them, each also with its `number`,
and with a `line` of text for readers. Only `action` is not in this list: it is in the action log.

| field | what |
|---|---|
| `event` | its kind |
| `at` | when it happened: seconds since the epoch (UTC), to the millisecond |
| `node` | a switch, a link, a build or an address |
| `text` | details; may be empty |
| those of its kind | below: programs should read these rather than `node` and `text` |

Nodes and ports have their names, datapath ids are 16 hexadecimal digits, a build is its identity,
and times are seconds.

The events `refused` and `error` describe the first OpenFlow error that the switch sent.
`error_type` and `error_code` are the type and code of this error (OpenFlow 1.3.5, §7.4.4), or null
if the switch sent no error. `entry` names the part of the program that caused the error. `errors`
is the number of errors.

Without `--json` an event is a line of text. If more than five events of one kind happen at once,
five of them have a line each, and the others share one line. `connected`, `programmed` and
`complete` have no lines; their numbers are in the lines that report progress."""
"""The text above the table of events."""


def events() -> Iterator[str]:
    """Every kind of event of the controller, with its fields."""
    yield _head("Events", ABOUT_EVENTS)
    yield "| event | what has happened | fields |\n|---|---|---|\n"
    for kind in KINDS:
        own = ", ".join(f"`{name}` {form}" for name, form in kind.types.items())
        yield f"| `{kind.name}` | {kind.about} | {own} |\n"


JSON_OF = (
    "compile fabric.yaml -o build",
    "verify build",
    "explain build n0 n2",
    "hosts paths build n0 n2",
    "hosts localise build",
    "render build --target eos -o out",
    "verify build --emitted out",
    "cables build",
    "throughput build --pattern uniform",
    "expand build --clusters quadric:1 -o larger",
    "plan larger --from build",
    "diff larger --from build",
    "folder build",
    "check spec fabric.yaml",
    "emulate build --engine model",
    "targets frr",
    "design --radix 8",
    "draw build -o lab.svg",
)
"""The commands whose JSON is shown; a `--json` is added to each."""


ABOUT_JSON = """What verbs print with `--json`: keys and types, seen on `examples/lab`. `null`, `[]`
and `{}` stand for what this example does not have. Not every verb is here: the help of a verb says
whether it has `--json`."""
"""The text above the forms."""


def json_forms() -> Iterator[str]:
    """The forms of what --json prints: each verb is run on examples/lab, values become types."""
    yield _head("JSON", ABOUT_JSON)
    with TemporaryDirectory() as folder, chdir(folder):
        for file in ("fabric.yaml", "inventory.yaml"):
            shutil.copy(ROOT / "examples" / "lab" / file, file)
        for words in JSON_OF:
            result = CliRunner().invoke(cli, [*words.split(), "--json"])
            if not result.stdout.startswith(("{", "[")):
                raise RuntimeError(f"polarfab {words}: {result.output} {result.exception!r}")
            form = json.dumps(shape(json.loads(result.stdout)), indent=2, ensure_ascii=False)
            verb = re.match(r"((hosts|check) )?\w+", words)[0]  # type: ignore[index]
            yield f"## {verb}\n\n`polarfab {words} --json`\n\n```json\n{form}\n```\n\n"


def shape(value: Any) -> Any:
    """The form of a JSON value: types in the place of values, one element of a list."""
    if isinstance(value, dict):
        shapes = {key: shape(member) for key, member in value.items()}
        are_alike = len({json.dumps(form) for form in shapes.values()}) == 1
        are_fields = all(re.fullmatch(r"[a-z_0-9]+", key) for key in value)
        if len(value) > 3 and are_alike and not are_fields:
            return {"…": next(iter(shapes.values()))}
        return shapes
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return {str: "text", bool: "true or false", int: "integer", float: "number"}.get(
        type(value), "null"
    )
