"""Library code names parameters; the verb prints its options for them. Messages say what to do."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from polarfab.verb_list import verb, verb_names

ROOT = Path(__file__).parents[2]
OPTION = r"--[a-z][a-z-]+(?![a-z=-])|(?<![\w-])-[a-z](?![\w-])"
OF_COMMANDS = {"controller/composition.py", "extensions/simulation/simulation_output.py"}
"""What a command prints, so that it may name its own options."""


def test_no_library_message_names_an_option() -> None:
    options = {
        word
        for name in verb_names()
        for command in (verb(name), *getattr(verb(name), "commands", {}).values())
        for each in command.params
        for word in (*each.opts, *each.secondary_opts)
    }
    found = [
        f"{file}:{line}: {text}"
        for room in ("compilers", "controller", "inventory", "extensions")
        for file in sorted((ROOT / room).rglob("*.py"))
        if not file.name.endswith("_verb.py") and str(file.relative_to(ROOT)) not in OF_COMMANDS
        if options & {*re.findall(OPTION, file.read_text())}  # else it need not be parsed
        for line, text in _texts_of_errors(file)
        if options & {*re.findall(OPTION, text)}
        and not re.search(r"polarfab |^sysctl |^ssh |^if \[ ", text)
    ]
    assert found == []


def _texts_of_errors(file: Path) -> Iterator[tuple[int, str]]:
    """Texts of a module that are no docstring; a whole command may have its options."""
    tree = ast.parse(file.read_text())
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr(values=parts):  # before its parts, as `walk` is breadth first
                said |= {id(part) for part in parts}
                constants = (part.value for part in parts if isinstance(part, ast.Constant))
                yield node.lineno, "".join(map(str, constants))
            case ast.Constant(value=str(text)) if id(node) not in said:
                yield node.lineno, text
