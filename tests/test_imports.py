"""Imports inside functions are for what is heavy, never to hide that two modules need each other."""

import ast
from collections.abc import Iterator
from pathlib import Path

import graphveil

SOURCE = Path(graphveil.__file__).parent


def module_name(path: Path) -> str:
    parts = ("graphveil", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}


def for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(node: ast.AST, inside: bool = False) -> Iterator[tuple[str, bool]]:
    """Modules of this package that are imported, and whether that happens inside a function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ImportFrom) and child.module:
            parts = {f"{child.module}.{name.name}" for name in child.names} & MODULES.keys()
            whole = {child.module} & MODULES.keys() if len(parts) < len(child.names) else set()
            yield from ((name, inside) for name in parts | whole)
        elif isinstance(child, ast.Import):
            yield from ((name.name, inside) for name in child.names if name.name in MODULES)
        elif not for_types(child):
            yield from imports(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))


ABOVE = {name: {other for other, inside in imports(tree) if not inside} for name, tree in MODULES.items()}


def reached(start: str) -> set[str]:
    """Everything that importing a module imports."""
    found, waiting = set(), [start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += ABOVE[name]
    return found


def test_no_import_inside_a_function_hides_a_cycle():
    inner = {(name, other) for name, tree in MODULES.items() for other, inside in imports(tree) if inside}
    hidden = {(name, other) for name, other in inner if name != other and name in reached(other)}
    assert not hidden


def test_no_two_modules_import_each_other():
    assert not {(a, b) for a in ABOVE for b in ABOVE[a] if a != b and a in reached(b) and not a.startswith(b)}
