"""Shared fixtures; tests that need a real graph skip with a reason when it is not there."""

from __future__ import annotations

import os
import warnings

import pytest
import torch
from hypothesis import settings

from tests.repeatable import pytest_fixture_setup as pytest_fixture_setup
from tests.repeatable import pytest_runtest_call as pytest_runtest_call

torch.set_num_threads(1)  # the suite runs in parallel workers; more threads only get in each other's way
settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.load_profile("steady")


@pytest.fixture
def cora():
    """Cora, from the data folder or the wheel."""
    from graphveil.errors import GraphveilError
    from graphveil.graph import load_dataset

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return load_dataset("cora", seed=0)
    except GraphveilError as error:
        pytest.skip(f"Cora is not here: {error}")


@pytest.fixture
def shared_data():
    """The folder of real graphs, if GRAPHVEIL_DATA names one."""
    folder = os.environ.get("GRAPHVEIL_DATA")
    if not folder:
        pytest.skip("GRAPHVEIL_DATA is not set: no folder of real graphs")
    return folder


@pytest.fixture(scope="session")
def browser():
    """Chromium, one for all tests of a worker, or a reason to skip."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is looked at")
    from graphveil.report.browser import find_browser, flags

    found = find_browser()
    if found is None:
        pytest.skip("no chromium is installed: no page is looked at")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, args=flags())
        yield running
        running.close()
