"""A browser that is installed here, to print pages."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from graphveil.errors import InputError
from graphveil.files import draft

VARIABLE = "GRAPHVEIL_BROWSER"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
QUIET = ("--headless", "--disable-gpu", "--disable-background-networking", "--no-first-run")
NONE_FOUND = (
    "no chromium, chrome or edge was found, which prints the page: install one (Debian: apt-get install chromium), name it in "
    f"{VARIABLE}, or write --html and print it from any browser"
)
PATIENCE = 120  # seconds


def find_browser() -> str | None:
    """The command of a chromium-like browser; the variable GRAPHVEIL_BROWSER goes first."""
    named = os.environ.get(VARIABLE)
    return shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)


def flags() -> list[str]:
    """How to start it without a window; its sandbox does not work for root."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    return [*QUIET, *(["--no-sandbox"] if root else [])]


def print_pdf(page: str, out: Path) -> None:
    """Print a page (its HTML) to a PDF file, completely or not at all."""
    browser = find_browser()
    if browser is None:
        raise InputError(NONE_FOUND)
    with tempfile.TemporaryDirectory() as folder, draft(out) as beside:
        source, made = Path(folder, "page.html"), Path(folder, "page.pdf")
        source.write_text(page, encoding="utf-8")
        asked = (f"--user-data-dir={folder}/profile", "--no-pdf-header-footer", f"--print-to-pdf={made}")
        words = [browser, *flags(), *asked, source.as_uri()]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise InputError(f"{browser} did not print the page within {PATIENCE} seconds") from None
        if not made.exists():
            said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            raise InputError(f"{browser} could not print the page: {said[0]}")
        shutil.copyfile(made, beside)
