"""``examples/holders.py`` in a small form: five holders, two processes, lost answers; the service changes nothing.

The service listens in this process, which has imported everything already; senders and the training job have their own.
"""

import sys
from contextlib import contextmanager
from pathlib import Path

from fastapi.testclient import TestClient

from graphveil.service.app import create_app
from tests.service.conftest import listening, unlimited

EXAMPLES = Path(__file__).parents[2] / "examples"


@contextmanager
def serving(where):
    with TestClient(create_app(unlimited(Path(where[1]), trains=True))) as client, listening(client.app) as url:
        yield url


def test_a_service_gives_what_one_process_gives_and_scores_newcomers(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import holders

    monkeypatch.setattr(holders, "serving", serving)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    words = ["--small", "--records", "100", "--method", "lpgnn", "--epochs", "10", "--folder", str(tmp_path)]
    try:
        holders.main(words)
    finally:
        sys.modules.pop("holders")
    said = capsys.readouterr().out
    assert "100 records of 5 holders" in said and "refused: 0" in said
    assert "classes equal, certificate equal" in said and "20 newcomers scored" in said
    lost = int(said.split(" answers were lost")[0].split(";")[-1].split()[0])
    assert lost >= 2
