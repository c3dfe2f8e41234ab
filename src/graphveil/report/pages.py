"""Pages whose figures are made again: a table or picture stands between the command that makes it and ``<!-- end -->``.

    <!-- graphveil results roster.jsonl --markdown -->
    ... what the command printed ...
    <!-- end -->

Both marks stand at the start of a line, outside of code. Commands run in the folder of the page, and only those that read
finished runs and train nothing: ``results``, ``report``, and ``reproduce`` with ``--from``. A picture (``--figure FILE``)
prints no table; what stands between its marks is kept. Nothing else of a page is touched, and no other page.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from graphveil.errors import InputError
from graphveil.files import draft
from graphveil.progress import Progress, silent

MARK = b"<!-- graphveil "
BLOCK = re.compile(
    r"^<!-- graphveil (?P<command>[^\r\n]+?) -->(?P<end>\r?\n)(?P<body>(?:(?!<!-- graphveil ).)*?)<!-- end -->",
    re.DOTALL | re.MULTILINE,
)
FENCE = re.compile(r"^(?:```|~~~)", re.MULTILINE)
VERBS = ("results", "report", "reproduce")


@dataclass(frozen=True)
class Outcome:
    """What a command ended with and printed."""

    code: int
    out: str
    error: str


Run = Callable[[Sequence[str], Path], Outcome]  # the words of a command, and the folder it runs in


def refresh(folder: Path, run: Run, progress: Progress = silent) -> dict[str, int]:
    """Make every marked table and picture of the pages in ``folder`` again; by page, how many there are."""
    pages = sorted(folder.glob("*.md"))
    found = {}
    for number, page in enumerate(pages):
        progress("pages", number, len(pages))
        before = page.read_bytes()
        if MARK not in before:
            continue
        text = _text(page, before)
        blocks = [block for block in BLOCK.finditer(text) if not _in_code(text, block.start())]
        if blocks:
            after = BLOCK.sub(partial(_made, page, run, text), text).encode("utf-8")
            if after != before:
                with draft(page) as beside:
                    beside.write_bytes(after)
            found[page.name] = len(blocks)
    progress("pages", len(pages), len(pages))
    return found


def _text(page: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{page} has marked tables but is no UTF-8: {error}") from None


def _in_code(text: str, place: int) -> bool:
    return len(FENCE.findall(text, 0, place)) % 2 == 1


def _made(page: Path, run: Run, text: str, block: re.Match[str]) -> str:
    command, end = block["command"], block["end"]
    if _in_code(text, block.start()):
        return block[0]
    words = _words(page, command)
    done = run(words, page.parent)
    missed_target = done.code == 1 and "--targets" in words and done.out
    if done.code and not missed_target:
        raise InputError(f"{page}: 'graphveil {command}' failed: {' '.join(done.error.strip().splitlines()[-1:])}")
    printed = f"\n{done.out.strip()}\n\n".replace("\n", end)
    body = block["body"] if "--figure" in words else printed
    return f"<!-- graphveil {command} -->{end}{body}<!-- end -->"


def _words(page: Path, command: str) -> list[str]:
    """The words of a command that a page may run."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"{page}: 'graphveil {command}' cannot be read: {error}") from None
    if not words or words[0] not in VERBS:
        raise InputError(f"{page}: 'graphveil {command}' is none of {', '.join(VERBS)}; a page runs nothing else")
    if words[0] == "report" and any((page.parent / word).is_dir() for word in words[1:]):
        raise InputError(f"{page}: 'graphveil {command}' would make pages within a page: name a file of rows")
    if words[0] != "reproduce":
        return words
    if "--from" not in words:
        raise InputError(f"{page}: 'graphveil {command}' would train: name the rows by --from FILE")
    return words if "--markdown" in words else [*words, "--markdown", "-"]
