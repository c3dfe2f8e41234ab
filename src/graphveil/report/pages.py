"""Pages whose figures are made again: a table or picture stands between the command that makes it and ``<!-- end -->``.

    <!-- graphveil results roster.jsonl --markdown -->
    ... what the command printed ...
    <!-- end -->

Commands run in the folder of the page. Only ``results`` and ``report`` are allowed: they read finished runs and train nothing.
A picture (``report ... --figure FILE``) prints no table; what stands between its marks is kept.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

from graphveil.errors import InputError
from graphveil.files import draft
from graphveil.progress import Progress, silent

BLOCK = re.compile(r"<!-- graphveil (?P<command>.+?) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL)
VERBS = ("results", "report")


def refresh(folder: Path, progress: Progress = silent) -> dict[str, int]:
    """Make every marked table and picture of the pages in ``folder`` again; by page, how many there are."""
    pages = sorted(folder.glob("*.md"))
    found = {}
    for number, page in enumerate(pages):
        progress("pages", number, len(pages))
        text = page.read_text(encoding="utf-8")
        count = len(BLOCK.findall(text))
        if count:
            made = BLOCK.sub(partial(_made, page), text)
            with draft(page) as beside:
                beside.write_text(made, encoding="utf-8")
            found[page.name] = count
    progress("pages", len(pages), len(pages))
    return found


def _made(page: Path, block: re.Match[str]) -> str:
    command = block["command"]
    words = shlex.split(command)
    if words[0] not in VERBS:
        raise InputError(f"{page}: 'graphveil {command}' is none of {', '.join(VERBS)}; a page runs nothing else")
    done = subprocess.run(
        [sys.executable, "-m", "graphveil", *words], cwd=page.parent, capture_output=True, text=True, check=False
    )
    missed_target = done.returncode == 1 and "--targets" in words and done.stdout
    if done.returncode and not missed_target:
        raise InputError(f"{page}: 'graphveil {command}' failed: {done.stderr.strip().splitlines()[-1:]}")
    body = block["body"] if "--figure" in words else f"\n{done.stdout.strip()}\n\n"
    return f"<!-- graphveil {command} -->\n{body}<!-- end -->"
