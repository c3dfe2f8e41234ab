"""Audits look on: nothing in ``audit/`` changes a method or patches one. Modes are classes: nobody asks which one it is in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphveil
from graphveil.audit import audit_method
from graphveil.audit.settings import audit_settings
from graphveil.methods.dp_mlp import DpMlp
from graphveil.methods.registry import method_class, method_names, modes_of
from graphveil.privacy.promise import NodeLevel

SOURCE = Path(graphveil.__file__).parent
WATCHED = {"method", "session", "server", "client", "clients", "curator", "randomizer", "predictor", "model"}
WAYS_TO_PATCH = {"setattr", "delattr", "patch", "__setattr__"}
MODES_BELONG_HERE = {"methods/registry.py"}


def nodes(folder: str) -> Iterator[tuple[str, ast.AST]]:
    for path in sorted((SOURCE / folder).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        yield from ((path.relative_to(SOURCE).as_posix(), node) for node in ast.walk(tree))


def owners(target: ast.expr) -> Iterator[str]:
    """The names on the way to what is assigned: ``self.method.steps`` has ``self`` and ``method``."""
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target = target.value
        if isinstance(target, (ast.Attribute, ast.Name)):
            yield target.attr if isinstance(target, ast.Attribute) else target.id


def patches(node: ast.AST) -> Iterator[str]:
    """What this node changes of a watched object, or patches."""
    match node:
        case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
            if WATCHED & set(owners(node)):
                yield ast.unparse(node)
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in WAYS_TO_PATCH:
            yield ast.unparse(node)
        case ast.Call(func=ast.Attribute(attr="set_params", value=value)) if not ast.unparse(value).endswith(
            ".clone()"
        ):
            yield ast.unparse(node)
        case ast.ImportFrom(module="unittest.mock") | ast.Import(names=[ast.alias(name="unittest.mock")]):
            yield ast.unparse(node)


def test_nothing_in_the_audit_assigns_to_a_method_or_patches_one():
    found = {(file, what) for file, node in nodes("audit") for what in patches(node)}
    assert not found


@pytest.mark.parametrize(
    "line",
    [
        "method.steps = 3",
        "self.method.hidden = 8",
        "session.ask = asked",
        "method.__dict__['steps'] = 3",
        "del model.predictor",
        "setattr(method, 'steps', 3)",
        "object.__setattr__(anything, 'steps', 3)",
        "patch('graphveil.privacy.noise.Noise.gaussian', wrong).start()",
        "patch.object(Noise, 'gaussian', wrong).start()",
        "method.set_params(steps=3)",
        "from unittest.mock import patch",
    ],
)
def test_the_watch_sees_every_way_to_change_a_method(line):
    """Without this, a watch that sees nothing would pass, too."""
    assert [what for node in ast.walk(ast.parse(line)) for what in patches(node)]


def test_copies_may_be_set_up():
    assert not [w for node in ast.walk(ast.parse("method = method.clone().set_params(a=1)")) for w in patches(node)]


def asks_for_a_mode(node: ast.AST) -> bool:
    """A test of a method's mode, or of which curator it has."""
    match node:
        case ast.Compare():
            asked: list[ast.AST] = [node.left, *node.comparators]
        case ast.If(test=test) | ast.IfExp(test=test):
            asked = [test]
        case ast.Match(subject=subject):
            asked = [subject]
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=args):
            return any(isinstance(part, ast.Name) and part.id == "PaperCurator" for a in args for part in ast.walk(a))
        case _:
            return False
    return any(isinstance(part, ast.Attribute) and part.attr == "mode" for part in asked)


def test_modes_are_classes_nobody_asks_for():
    found = {file for folder in ("methods", "audit") for file, node in nodes(folder) if asks_for_a_mode(node)}
    assert {file for file in found if not file.endswith("/published.py")} <= MODES_BELONG_HERE


@pytest.mark.parametrize(
    "line",
    [
        "if self.mode == 'published': pass",
        "x = 1 if method.mode else 2",
        "isinstance(curator, (Curator, PaperCurator))",
        "match self.mode:\n case 'sound': pass",
    ],
)
def test_the_watch_sees_every_way_to_ask(line):
    assert any(asks_for_a_mode(node) for node in ast.walk(ast.parse(line)))


def test_an_audit_leaves_the_method_as_it_was():
    method = DpMlp(steps=4)
    before, kind = method.get_params(), {key: id(value) for key, value in vars(DpMlp).items()}
    audit_method(method, NodeLevel(4.0, 1e-4), runs=1, samples=50_000, outside=False)
    assert method.get_params() == before and {key: id(value) for key, value in vars(DpMlp).items()} == kind


def test_settings_of_an_audit_are_values_for_options_that_the_method_has():
    for name in method_names():
        for mode in modes_of(name):
            method = method_class(name, mode)(mode=mode)
            before = method.get_params()
            assert audit_settings(method).keys() <= before.keys() and method.get_params() == before
